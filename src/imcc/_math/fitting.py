"""From rows and labels to a fitted model: here the pieces meet.

Clusters, kernel or feature map, statistics, solver.  :func:`fit_arrays` takes rows in memory;
:func:`imcc._math.stream.fitting.fit_stream` takes them chunk by chunk.  Both read the same
:class:`FitSettings` and give the same :class:`FittedModel`.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from imcc._array.array import (
    Array,
    asarray,
    astype,
    column_sums,
    moved_record,
    submatrix,
    take_rows,
    to_numpy,
)
from imcc._array.device import explained_memory_errors, limited_threads, on_device, require_memory
from imcc._math.clustering import VirtualExamples, assign_rows, check_points, virtual_examples
from imcc._math.kernels import Kernel, KernelModel, Model, choose_width, moved_by
from imcc._math.maps import Approximation, FeatureMap, IdentityMap, feature_sums
from imcc._math.solver import (
    Setting,
    constant_labels,
    label_patterns,
    solve_features,
    solve_kernel,
)
from imcc._utils.progress import report_progress
from imcc._utils.validation import (
    Features,
    Target,
    check_choice,
    check_count,
    check_finite_result,
    explained_singularity,
)

#: Remedy if the exact kernel model does not fit into memory.
REMEDY = (
    "use approximation='nystroem', whose memory is not quadratic in the number of rows, or fewer "
    "rows"
)
# Measured number of n x n matrices in memory during an exact fit, by solver: the kernel matrix and
# its factor, or the kernel matrix, its eigenvectors and the workspace of the decomposition.
FIT_MATRICES = {"auto": 2.2, "cholesky": 2.2, "spectral": 6.0}

# Seconds that the parts of a fit take on one core, as measured for 500 to 6000 rows of 60 features:
# clustering per row; kernel matrix and factorisation per pair and triple of rows.
_CLUSTERING, _SQUARE, _CUBE = 2e-5, 1.3e-7, 3.5e-11

APPROXIMATIONS = ("nystroem",)
LANDMARKS = ("kmeans", "random")
# Average precision is within 0.005 of that of the exact model (docs/scale.md).
DEFAULT_N_COMPONENTS = 1000
# Number of patterns of known rows above which a fit with unknown labels issues a warning.
MANY_PATTERNS = 20


@dataclass(frozen=True)
class FitSettings:
    """The parameters of a fit, checked; see :class:`imcc.IMCCClassifier`.

    Attributes
    ----------
    setting : Setting
        The weights of the objective.
    kernel : Kernel
    width : "mean_distance" or float
    width_scale : float
    approximation : Approximation or None
    n_clusters : int, sequence of int or None
    clusterer : scikit-learn clusterer, ndarray of shape (n_clusters, n_features) or None
    lloyd_passes : int
        Of a stream.
    solver : {"auto", "cholesky", "spectral"}
    seed : int
    device : str or None
    """

    setting: Setting
    kernel: Kernel
    width: Any
    width_scale: float
    approximation: Approximation | None
    n_clusters: Any
    clusterer: Any
    lloyd_passes: int
    solver: str
    seed: int
    device: str | None

    @property
    def has_features(self) -> bool:
        """Whether the size of the model does not depend on the number of rows."""
        return self.approximation is not None or self.kernel.is_linear


def check_approximation(
    approximation: Any, kernel: Kernel, width: Any, n_components: Any, landmarks: Any
) -> Approximation | None:
    """Check the parameters of an approximation; return None if there is none."""
    by_name = isinstance(landmarks, str)
    if by_name:
        check_choice("landmarks", landmarks, LANDMARKS)
    if approximation != "nystroem" and not (by_name and landmarks == LANDMARKS[0]):
        raise ValueError(
            f"landmarks have no effect with approximation={approximation!r}: set "
            "approximation='nystroem', or keep landmarks='kmeans'"
        )
    if n_components is not None:
        check_count("n_components", n_components)
    if approximation is None:
        return None
    check_choice("approximation", approximation, APPROXIMATIONS)
    if kernel.is_linear:
        raise ValueError(
            "kernel='linear' needs no approximation, because its cost is linear in the number of "
            "rows; use approximation=None"
        )
    if not by_name:
        landmarks = np.asarray(to_numpy(landmarks))
        check_points("landmarks", landmarks, "n_components", n_components)
        landmarks = landmarks.astype(np.result_type(landmarks, np.float32), copy=False)
        n_components = len(landmarks)
    count = DEFAULT_N_COMPONENTS if n_components is None else n_components
    return Approximation(kernel, width, int(count), landmarks)


@dataclass(frozen=True)
class FittedModel:
    """Result of a fit, in arrays of the library of the input.

    Attributes
    ----------
    model : Model
    centers : array of shape (n_clusters, n_features)
    soft_labels : array of shape (n_clusters, q)
    sizes : array of shape (n_clusters,)
        Rows in each cluster (int), or the sum of their weights (float).
    assignment : array of shape (n_samples,) or (n_samples, n_clusterings), or None
        The cluster of each row, where the model keeps the rows.
    """

    model: Model
    centers: Array
    soft_labels: Array
    sizes: Array
    assignment: Array | None


def finished(
    model: Model,
    virtual: VirtualExamples,
    constants: Array,
    like: Any,
    assignment: np.ndarray | None = None,
) -> FittedModel:
    """Add constant labels to the intercept, and return results in the library of the input.

    Parameters
    ----------
    model : Model
    virtual : VirtualExamples
        As the model, of labels less the constants.
    constants : array of shape (q,)
        See :func:`imcc._math.solver.constant_labels`.
    like : array
        NumPy's rows give NumPy's results, wherever these were computed.
    assignment : ndarray of shape (n_samples, n_clusterings), optional
        The clusters of the rows, where the model keeps the rows.
    """
    if assignment is not None:
        assignment = asarray(assignment[:, 0] if assignment.shape[1] == 1 else assignment, like)
    return FittedModel(
        model=moved_record(replace(model, intercept=model.intercept + constants), like),
        centers=asarray(virtual.centers, like),
        soft_labels=asarray(virtual.soft_labels + constants, like),
        sizes=asarray(virtual.sizes, like, "int64" if virtual.weights is None else "float64"),
        assignment=assignment,
    )


def fit_arrays(
    X: Features,
    target: Target,
    settings: FitSettings,
    feature_names: np.ndarray | None = None,
    sample_weight: np.ndarray | None = None,
) -> FittedModel:
    """Fit a model on rows that are in memory, or on a device.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
    target : Target
    settings : FitSettings
    feature_names : ndarray of str, optional
        For error messages.
    sample_weight : ndarray of shape (n_samples,), optional
        Weights of the rows, all above zero.
    """
    what = f"the model of {X.shape[0]} x {X.shape[1]} rows"
    with explained_memory_errors(what, REMEDY), limited_threads(X.shape[0]):
        rows = on_device(X, settings.device)
        if not settings.has_features:
            # Before the rows are clustered, which may take long.
            require_room(rows, settings)
        weights = None if sample_weight is None else asarray(sample_weight, rows)
        if target.known is not None:
            warn_of_patterns(len(label_patterns(target.known)), stacklevel=5)
        report_progress(0.0, what="clustering rows")
        assignment = assign_rows(
            rows, settings.n_clusters, settings.clusterer, settings.seed, sample_weight
        )
        n_rows = rows.shape[0]
        clustered = _CLUSTERING * n_rows
        solved = 5 * clustered if settings.has_features else _SQUARE * n_rows**2 + _CUBE * n_rows**3
        report_progress(clustered, clustered + solved, "solving")
        with explained_singularity(f"the model with {settings.setting}", X, feature_names):
            model, virtual, constants = fit_assigned(
                rows,
                asarray(target.signs, rows),
                assignment,
                settings,
                weights=weights,
                known=target.known,
            )
        check_model(model, settings.setting, X, feature_names)
    keeps_rows = settings.approximation is None
    return finished(model, virtual, constants, X, assignment if keeps_rows else None)


def fit_assigned(
    X: Features,
    signs: Array,
    assignment: np.ndarray,
    settings: FitSettings,
    landmarks: Features | None = None,
    weights: Array | None = None,
    known: np.ndarray | None = None,
) -> tuple[Model, VirtualExamples, Array]:
    """Fit a model on rows whose clusters are known.

    Where some labels are not known, a label is fitted on the rows in which it is known, as if there
    were no others: they count in its loss, its virtual examples and its pull.  Only clusters, width
    and feature map are those of all rows.  So labels that are known in the same rows share a
    factorisation, and each other pattern of known rows costs another one.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
    signs : array of shape (n_samples, q)
        Labels as -1 and +1; 0 where they are not known.
    assignment : ndarray of shape (n_samples, n_clusterings)
    settings : FitSettings
    landmarks : array or CSR matrix, optional
        Those of Nyström's approximation, where they are known.
    weights : array of shape (n_samples,), optional
        Of the rows, beside them, all above zero.
    known : ndarray of bool, shape (n_samples, q), optional
        On the host: which labels are known, each of at least one row; all unless given.

    Returns
    -------
    model : Model
        Of the labels less the constants; not checked for being finite.
    virtual : VirtualExamples
    constants : array of shape (q,)
        What to add to the scores: labels that do not vary are the intercept alone, exactly.
    """
    # Overflow raises an error in check_model instead of a warning here.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        design = _Design.of(X, settings, landmarks, weights)
        if known is None:
            coef, intercept, virtual, constants = design.fit(X, signs, assignment, weights)
            return design.model(coef, intercept), virtual, constants
        return _fit_patterns(design, X, signs, known, assignment, weights)


def _fit_patterns(
    design: _Design,
    X: Features,
    signs: Array,
    known: np.ndarray,
    assignment: np.ndarray,
    weights: Array | None,
) -> tuple[Model, VirtualExamples, Array]:
    """Fit with unknown labels, one pattern of known rows after the other."""
    n_rows, n_labels = known.shape
    virtual_of_all = virtual_examples(X, signs, assignment, weights)
    coef: np.ndarray | None = None
    intercept, constants = np.zeros(n_labels), np.zeros(n_labels)
    soft_labels = np.zeros((virtual_of_all.sizes.shape[0], n_labels))
    for rows, labels in label_patterns(known):
        clusters, own = np.unique(assignment[rows], return_inverse=True)
        part, b, virtual, constant = design.fit(
            take_rows(X, rows),
            submatrix(signs, rows, labels),
            own.reshape(len(rows), -1),
            None if weights is None else take_rows(weights, rows),
            rows,
        )
        # There is a coefficient per row, or per feature.
        of_rows = design.K is not None
        if coef is None:
            coef = np.zeros((n_rows if of_rows else part.shape[0], n_labels))
        coef[np.ix_(rows if of_rows else np.arange(len(coef)), labels)] = to_numpy(part)
        intercept[labels], constants[labels] = to_numpy(b), to_numpy(constant)
        soft_labels[np.ix_(clusters, labels)] = to_numpy(virtual.soft_labels + constant)
    moved = asarray(constants, X)
    return (
        design.model(asarray(coef, X), asarray(intercept, X)),
        replace(virtual_of_all, soft_labels=asarray(soft_labels, X) - moved),
        moved,
    )


def warn_of_patterns(
    n_patterns: int, where: str = "", stacklevel: int = 2, remedy: str = ""
) -> None:
    """Warn if unknown labels have many patterns, which takes long."""
    if n_patterns > MANY_PATTERNS:
        warnings.warn(
            f"the labels are known in {n_patterns} different sets of rows: each needs a separate "
            f"factorisation{where} and takes about as long as a fit with all labels known; fewer "
            f"labels, or labels that are unknown in the same rows, take less time{remedy}",
            UserWarning,
            stacklevel=stacklevel,
        )


@dataclass(frozen=True)
class _Design:
    """The kernel matrix or the feature map of all rows, for fits on all or on some of them.

    Attributes
    ----------
    rows : array or CSR matrix
        All rows, those of an exact model moved by its origin.
    settings : FitSettings
    feature_map : FeatureMap or None
        For models on features.
    K : array of shape (n_samples, n_samples) or None
        Kernel matrix of all rows, for exact models.  A fit on all rows overwrites it.
    width : float or None
    origin : array or None
    """

    rows: Features
    settings: FitSettings
    feature_map: FeatureMap | None
    K: Array | None = None
    width: float | None = None
    origin: Array | None = None

    @classmethod
    def of(
        cls,
        X: Features,
        settings: FitSettings,
        landmarks: Features | None,
        weights: Array | None,
    ) -> _Design:
        kernel, approximation = settings.kernel, settings.approximation
        if approximation is not None:
            scale, seed = settings.width_scale, settings.seed
            return cls(X, settings, approximation.fit(X, scale, seed, landmarks, weights))
        if is_primal(kernel, X.shape[1], X.shape[0]):
            return cls(X, settings, IdentityMap.fit(X))
        if kernel.is_linear:
            require_room(X, settings)
            X = astype(X, "float64")
        origin = kernel.origin(X)
        moved = moved_by(X, origin)
        base = kernel.base(astype(moved, "float64"))
        width = choose_width(kernel, base, settings.width, settings.width_scale, weights)
        return cls(moved, settings, None, kernel.finish(base, width), width, origin)

    def fit(
        self,
        X: Features,
        signs: Array,
        assignment: np.ndarray,
        weights: Array | None,
        kept: np.ndarray | None = None,
    ) -> tuple[Array, Array, VirtualExamples, Array]:
        """Fit labels on all rows, or on those kept; the other arguments are of these rows.

        Returns
        -------
        coef, intercept : array
        virtual : VirtualExamples
        constants : array of shape (q,)
        """
        constants = constant_labels(column_sums(signs), float(X.shape[0]))
        signs = signs - constants
        virtual = virtual_examples(X, signs, assignment, weights)
        setting, solver = self.settings.setting, self.settings.solver
        if self.feature_map is not None:
            sums = feature_sums(self.feature_map, X, signs, virtual.membership, weights)
            coef, intercept = solve_features(
                self.feature_map.of_sums(sums),
                self.feature_map.transform(virtual.centers),
                virtual,
                setting,
                solver,
            )
            return coef, intercept, virtual, constants
        kernel = self.settings.kernel
        rows = self.rows if kept is None else take_rows(self.rows, kept)
        K = self.K if kept is None else submatrix(self.K, kept, kept)
        centers = moved_by(virtual.centers, self.origin)
        K_centers = kernel.finish(kernel.base(centers, astype(rows, "float64")), self.width)
        solver = _chosen_solver(solver, kernel)
        coef, intercept = solve_kernel(K, K_centers, signs, virtual, setting, solver)
        return coef, intercept, virtual, constants

    def model(self, coef: Array, intercept: Array) -> Model:
        """Return the model with the coefficients of all labels."""
        kernel = self.settings.kernel
        if self.feature_map is not None:
            return self.feature_map.model(coef, intercept)
        if kernel.is_linear:
            return IdentityMap(self.origin).model(self.rows.T @ coef, intercept)
        return KernelModel(kernel, self.width, self.origin, self.rows, coef, intercept)


def is_primal(kernel: Kernel, n_features: int, n_rows: int) -> bool:
    """Whether the kernel is linear with fewer features than rows, and is solved in the primal."""
    return kernel.is_linear and n_features < n_rows


def check_model(
    model: Model, setting: Setting, X: Features | None = None, names: Any = None
) -> None:
    """Raise an error if a model is not finite."""
    what = f"the coefficients of the model with {setting}"
    for part in (model.intercept, *model.coefficients.values()):
        check_finite_result(part, what, X=X, names=names)


def require_room(X: Features, settings: FitSettings) -> None:
    """Raise an error for an exact model that does not fit into memory, before it starts."""
    n_bytes = 8.0 * FIT_MATRICES[_chosen_solver(settings.solver, settings.kernel)] * X.shape[0] ** 2
    require_memory(n_bytes, X, f"the exact model of {X.shape[0]} rows", REMEDY)


def _chosen_solver(solver: str, kernel: Kernel) -> str:
    """Return the solver; "auto" is spectral for a kernel that may be indefinite."""
    return "spectral" if solver == "auto" and not kernel.is_semidefinite else solver
