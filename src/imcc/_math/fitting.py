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
    scaled_rows,
    submatrix,
    take_rows,
    to_numpy,
)
from imcc._array.device import explained_memory_errors, limited_threads, on_device, require_memory
from imcc._math.clustering import VirtualExamples, assign_rows, virtual_examples
from imcc._math.kernels import Kernel, LinearKernel, choose_width
from imcc._math.maps import (
    Approximation,
    FeatureMap,
    IdentityMap,
    KernelMap,
    feature_sums,
    warn_if_indefinite,
)
from imcc._math.models import REMEDY, KernelModel, Model, Setting, moved_by
from imcc._math.sampling import sample_weighted
from imcc._math.solver import (
    ClusterTerms,
    Rotation,
    constant_labels,
    kernel_problem,
    label_patterns,
    solve_dual,
    solve_primal,
    solve_spectral,
)
from imcc._math.statistics import Statistics
from imcc._utils.progress import report_progress
from imcc._utils.validation import (
    ExplainedLinAlgError,
    Features,
    Target,
    check_finite_result,
    explained_singularity,
)

# Measured number of n x n matrices in memory during an exact fit, by solver: the kernel matrix and
# its factor, or the kernel matrix, its eigenvectors and the workspace of the decomposition.
FIT_MATRICES = {"auto": 2.2, "cholesky": 2.2, "spectral": 6.0}

# Seconds that the parts of a fit take on one core, as measured for 500 to 6000 rows of 60 features:
# clustering per row; kernel matrix and factorisation per pair and triple of rows.
_CLUSTERING, _SQUARE, _CUBE = 2e-5, 1.3e-7, 3.5e-11

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
    target : Target
        What the labels are.
    feature_names : ndarray of str or None
    assignment : array of shape (n_samples,) or (n_samples, n_clusterings), or None
        The cluster of each row, where the model keeps the rows.
    """

    model: Model
    centers: Array
    soft_labels: Array
    sizes: Array
    target: Target
    feature_names: np.ndarray | None
    assignment: Array | None = None


def finished(
    model: Model,
    centers: Array,
    soft_labels: Array,
    sizes: Array,
    constants: Array,
    *,
    like: Any,
    target: Target,
    feature_names: np.ndarray | None,
    assignment: np.ndarray | None = None,
    weighted: bool = False,
) -> FittedModel:
    """Add constant labels to the intercept, and return results in the library of the input.

    Parameters
    ----------
    model, centers, soft_labels, sizes
        Of labels less the constants.
    constants : array of shape (q,)
        See :func:`imcc._math.solver.constant_labels`.
    like : array
        NumPy's rows give NumPy's results, wherever these were computed.
    target, feature_names, assignment
        As for :class:`FittedModel`.
    weighted : bool
        Whether sizes are sums of weights.
    """
    return FittedModel(
        model=moved_record(replace(model, intercept=model.intercept + constants), like),
        centers=asarray(centers, like),
        soft_labels=asarray(soft_labels + constants, like),
        sizes=asarray(sizes, like, "float64" if weighted else "int64"),
        target=target,
        feature_names=feature_names,
        assignment=None if assignment is None else asarray(assignment, like),
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
    sample_weight : ndarray of shape (n_samples,), optional
        Weights of the rows, all above zero.
    """
    what = f"the model of {X.shape[0]} x {X.shape[1]} rows"
    with explained_memory_errors(what, REMEDY), limited_threads(X.shape[0]):
        rows = on_device(X, settings.device)
        if not settings.has_features:
            # Before the rows are clustered, which may take long.
            _require_room(rows, settings.solver, settings.kernel)
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
    return finished(
        model,
        virtual.centers,
        virtual.soft_labels,
        virtual.sizes,
        constants,
        like=X,
        target=target,
        feature_names=feature_names,
        assignment=_columns(assignment) if settings.approximation is None else None,
        weighted=sample_weight is not None,
    )


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
        if known is not None:
            return _fit_patterns(design, X, signs, known, assignment, weights)
        constants = constant_labels(column_sums(signs), float(X.shape[0]))
        signs = signs - constants
        virtual = virtual_examples(X, signs, assignment, weights)
        coef, intercept = design.solve(signs, virtual)
        return design.model(coef, intercept), virtual, constants


def _fit_patterns(
    design: _Design,
    X: Features,
    signs: Array,
    known: np.ndarray,
    assignment: np.ndarray,
    weights: Array | None,
) -> tuple[Model, VirtualExamples, Array]:
    """Fit with unknown labels, one pattern of known rows after the other."""
    on_host, n_labels = to_numpy(signs), signs.shape[1]
    virtual_of_all = virtual_examples(X, signs, assignment, weights)
    coef = np.zeros((design.n_coef, n_labels))
    intercept, constants = np.zeros(n_labels), np.zeros(n_labels)
    soft_labels = np.zeros((virtual_of_all.sizes.shape[0], n_labels))
    for rows, labels in label_patterns(known):
        own = asarray(on_host[np.ix_(rows, labels)], X)
        constant = constant_labels(column_sums(own), float(len(rows)))
        clusters, inverse = np.unique(assignment[rows], return_inverse=True)
        virtual = virtual_examples(
            take_rows(X, rows),
            own - constant,
            inverse.reshape(len(rows), -1),
            None if weights is None else take_rows(weights, rows),
        )
        part, b = design.solve(own - constant, virtual, rows)
        coef[np.ix_(rows if design.of_rows else np.arange(len(coef)), labels)] = to_numpy(part)
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
        All rows; for a kernel model, moved by its origin.
    settings : FitSettings
    feature_map : FeatureMap or None
        For models on features.
    K : array of shape (n_samples, n_samples) or None
        Kernel matrix of all rows, for exact kernel models.  A fit on all rows overwrites it.
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
            sample, of_sample = sample_weighted(
                X, weights, approximation.sample_size, settings.seed
            )
            return cls(
                X,
                settings,
                approximation.fit(
                    sample, settings.width_scale, settings.seed, landmarks, of_sample
                ),
            )
        if settings.has_features:
            return cls(X, settings, IdentityMap.fit(X))
        origin = kernel.origin(X)
        moved = moved_by(X, origin)
        base = kernel.base(astype(moved, "float64"))
        width = choose_width(kernel, base, settings.width, settings.width_scale, weights)
        return cls(moved, settings, None, kernel.finish(base, width), width, origin)

    @property
    def of_rows(self) -> bool:
        """Whether there is a coefficient per row instead of per feature."""
        return self.feature_map is None

    @property
    def n_coef(self) -> int:
        """Number of coefficients per label."""
        if self.feature_map is None:
            return int(self.rows.shape[0])
        return int(self.feature_map.transform(self.rows[:1, :]).shape[1])

    def solve(
        self, signs: Array, virtual: VirtualExamples, kept: np.ndarray | None = None
    ) -> tuple[Array, Array]:
        """Return the coefficients and the intercept of a fit on all rows, or on those kept."""
        settings = self.settings
        rows = self.rows if kept is None else take_rows(self.rows, kept)
        if self.feature_map is not None:
            return _solve_on_features(rows, signs, virtual, self.feature_map, settings)
        assert self.K is not None
        K = self.K if kept is None else submatrix(self.K, kept, kept)
        centers = moved_by(virtual.centers, self.origin)
        kernel = settings.kernel
        K_centers = kernel.finish(kernel.base(centers, astype(rows, "float64")), self.width)
        solver = _chosen_solver(settings.solver, kernel)
        return _solve_kernel(K, K_centers, signs, virtual, settings.setting, solver)

    def model(self, coef: Array, intercept: Array) -> Model:
        """Return the model with the coefficients of all labels."""
        if self.feature_map is not None:
            return self.feature_map.model(coef, intercept)
        return KernelModel(
            self.settings.kernel, self.width, self.origin, self.rows, coef, intercept
        )


def _columns(assignment: np.ndarray) -> np.ndarray:
    """Return the clusters of the rows, as a vector for a single clustering."""
    return assignment[:, 0] if assignment.shape[1] == 1 else assignment


def _solve_on_features(
    X: Features,
    signs: Array,
    virtual: VirtualExamples,
    feature_map: FeatureMap,
    settings: FitSettings,
) -> tuple[Array, Array]:
    """Return W and b for the features of rows."""
    if settings.approximation is None and X.shape[1] >= X.shape[0]:
        return _solve_wide(X, signs, virtual, feature_map, settings)
    sums = feature_sums(feature_map, X, signs, virtual.membership, virtual.weights)
    return solve_features(
        feature_map.of_sums(sums),
        feature_map.transform(virtual.centers),
        ClusterTerms.of(virtual),
        settings.setting,
        settings.solver,
    )


def check_model(
    model: Model, setting: Setting, X: Features | None = None, names: Any = None
) -> None:
    """Raise an error if a model is not finite."""
    what = f"the coefficients of the model with {setting}"
    for part in (model.intercept, *model.coefficients.values()):
        check_finite_result(part, what, X=X, names=names)


def _solve_wide(
    X: Features,
    signs: Array,
    virtual: VirtualExamples,
    feature_map: FeatureMap,
    settings: FitSettings,
) -> tuple[Array, Array]:
    """Return W and b for at least as many features as rows, in the dual with K = Psi Psi^T."""
    _require_room(X, settings.solver, settings.kernel)
    rows, centers = feature_map.transform(X), feature_map.transform(virtual.centers)
    inner = LinearKernel("linear").base
    coef, intercept = _solve_kernel(
        inner(rows), inner(centers, rows), signs, virtual, settings.setting, settings.solver
    )
    return rows.T @ coef, intercept


def solve_features(
    sums: Statistics,
    of_centers: Array,
    terms: ClusterTerms,
    setting: Setting,
    solver: str,
) -> tuple[Array, Array]:
    """Return W and b from sums of features; "auto" is Cholesky."""
    weights = (setting.alpha, setting.beta, setting.gamma)
    if solver != "spectral":
        return solve_primal(sums, of_centers, terms, *weights)
    rotation = Rotation.of_gram(sums.gram)
    problem = rotation.problem(sums.cross, of_centers, sums.cluster_sums, terms)
    rotated, intercept = solve_spectral(problem, *weights)
    return rotation.vectors @ rotated, intercept


def _solve_kernel(
    K: Array,
    K_centers: Array,
    signs: Array,
    virtual: VirtualExamples,
    setting: Setting,
    solver: str,
) -> tuple[Array, Array]:
    """Return A and b; "auto" is Cholesky, or spectral where that would lose accuracy.

    K is overwritten.  Rows with weights are scaled by their roots, kernel matrix, labels and
    coefficients alike; see :mod:`imcc._math.solver`.
    """
    weights, roots = (setting.alpha, setting.beta, setting.gamma), virtual.roots
    if roots is not None:
        K *= roots[:, None]
        K *= roots
        K_centers, signs = K_centers * roots, scaled_rows(signs, roots)
    coef = None
    if solver != "spectral":
        try:
            coef, intercept = solve_dual(K, K_centers, signs, virtual, *weights)
        except np.linalg.LinAlgError as error:
            if solver == "cholesky":
                raise ExplainedLinAlgError(
                    f"solver='cholesky': {error}; use solver='auto' or 'spectral'"
                ) from error
    if coef is None:
        kernel_map = KernelMap.fit(K)
        warn_if_indefinite(kernel_map.negative)
        cross = kernel_map.train_sums(signs.T)
        problem = kernel_problem(kernel_map, cross, K_centers, virtual)
        inner, intercept = solve_spectral(problem, *weights)
        coef = kernel_map.basis @ inner
    return (coef if roots is None else scaled_rows(coef, roots)), intercept


def _require_room(X: Features, solver: str, kernel: Kernel) -> None:
    """Raise an error for an exact model that does not fit into memory, before it starts."""
    n_bytes = 8.0 * FIT_MATRICES[_chosen_solver(solver, kernel)] * X.shape[0] ** 2
    require_memory(n_bytes, X, f"the exact model of {X.shape[0]} rows", REMEDY)


def _chosen_solver(solver: str, kernel: Kernel) -> str:
    """Return the solver; "auto" is spectral for a kernel that may be indefinite."""
    return "spectral" if solver == "auto" and not kernel.is_semidefinite else solver
