"""From rows and labels to a fitted model: here the pieces meet.

Clusters, kernel or feature map, statistics, solver.  :func:`fit_arrays` takes rows in memory;
:func:`imcc._stream.fitting.fit_stream` takes them chunk by chunk.  Both read the same
:class:`FitSettings` and give the same :class:`FittedModel`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from imcc._backend.array import Array, asarray, astype, column_sums, moved_record
from imcc._backend.device import explained_memory_errors, on_device, require_memory
from imcc._core.clustering import VirtualExamples, assign_rows, virtual_examples
from imcc._core.dual import solve_dual
from imcc._core.kernels import Kernel, LinearKernel, choose_width
from imcc._core.maps import (
    Approximation,
    FeatureMap,
    IdentityMap,
    KernelMap,
    feature_sums,
    warn_if_indefinite,
)
from imcc._core.models import REMEDY, KernelModel, Model, Setting, moved_by
from imcc._core.sampling import sample_rows
from imcc._core.solver import ClusterTerms, Rotation, kernel_problem, solve_primal, solve_spectral
from imcc._core.statistics import Statistics, constant_labels
from imcc._utils.validation import Features, Target, check_finite_result

# n x n matrices that an exact fit holds at a time, by solver, as measured: the kernel matrix and
# its factor, or the kernel matrix, its eigenvectors and what their computation needs.
FIT_MATRICES = {"auto": 2.2, "cholesky": 2.2, "spectral": 6.0}


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
    span : {"train", "augmented"}
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
    span: str
    solver: str
    seed: int
    device: str | None

    @property
    def has_features(self) -> bool:
        """Whether the model is one on features of finite dimension, which does not grow."""
        return self.approximation is not None or self.kernel.is_linear


@dataclass(frozen=True)
class FittedModel:
    """What a fit gives, in arrays of the kind that was given.

    Attributes
    ----------
    model : Model
    centers : array of shape (n_clusters, n_features)
    soft_labels : array of shape (n_clusters, q)
    sizes : array of int, shape (n_clusters,)
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
) -> FittedModel:
    """Add the labels that do not vary, and return results of the kind that was given.

    Parameters
    ----------
    model, centers, soft_labels, sizes
        Of labels less the constants.
    constants : array of shape (q,)
        See :func:`imcc._core.statistics.constant_labels`.
    like : array
        NumPy's rows give NumPy's results, wherever these were computed.
    target, feature_names, assignment
        As for :class:`FittedModel`.
    """
    return FittedModel(
        model=moved_record(replace(model, intercept=model.intercept + constants), like),
        centers=asarray(centers, like),
        soft_labels=asarray(soft_labels + constants, like),
        sizes=asarray(sizes, like, "int64"),
        target=target,
        feature_names=feature_names,
        assignment=None if assignment is None else asarray(assignment, like),
    )


def fit_arrays(
    X: Features, target: Target, settings: FitSettings, feature_names: np.ndarray | None = None
) -> FittedModel:
    """Fit a model on rows that are in memory, or on a device.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
    target : Target
    settings : FitSettings
    feature_names : ndarray of str, optional
    """
    with explained_memory_errors(f"the model of {X.shape[0]} x {X.shape[1]} rows", REMEDY):
        rows = on_device(X, settings.device)
        assignment = assign_rows(rows, settings.n_clusters, settings.clusterer, settings.seed)
        model, virtual, constants = fit_assigned(
            rows, asarray(target.signs, rows), assignment, settings
        )
        check_model(model, settings.setting, X, feature_names)
    columns = assignment[:, 0] if assignment.shape[1] == 1 else assignment
    return finished(
        model,
        virtual.centers,
        virtual.soft_labels,
        virtual.sizes,
        constants,
        like=X,
        target=target,
        feature_names=feature_names,
        assignment=columns if settings.approximation is None else None,
    )


def fit_assigned(
    X: Features,
    signs: Array,
    assignment: np.ndarray,
    settings: FitSettings,
    landmarks: Features | None = None,
) -> tuple[Model, VirtualExamples, Array]:
    """Fit a model on rows whose clusters are known.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
    signs : array of shape (n_samples, q)
        Labels as -1 and +1.
    assignment : ndarray of shape (n_samples, n_clusterings)
    settings : FitSettings
    landmarks : array or CSR matrix, optional
        Those of Nyström's approximation, where they are known.

    Returns
    -------
    model : Model
        Of the labels less the constants; not checked for being finite.
    virtual : VirtualExamples
    constants : array of shape (q,)
        What to add to the scores: labels that do not vary are the intercept alone, exactly.
    """
    constants = constant_labels(column_sums(signs), float(X.shape[0]))
    signs = signs - constants
    virtual = virtual_examples(X, signs, assignment)
    # What overflows is an error of check_model, not a warning here.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return fit_model(X, signs, virtual, settings, landmarks), virtual, constants


def fit_model(
    X: Features,
    signs: Array,
    virtual: VirtualExamples,
    settings: FitSettings,
    landmarks: Features | None = None,
) -> Model:
    """Fit the kind of model that the settings ask for."""
    if not settings.has_features:
        return fit_kernel(X, signs, virtual, settings)
    feature_map: FeatureMap
    if settings.approximation is not None:
        sample = sample_rows(X, settings.approximation.sample_size, settings.seed)
        feature_map = settings.approximation.fit(
            sample, settings.width_scale, settings.seed, landmarks
        )
    else:
        feature_map = IdentityMap.fit(X)
        if X.shape[1] >= X.shape[0]:
            weights, intercept = _solve_wide(X, signs, virtual, feature_map, settings)
            return feature_map.model(weights, intercept)
    sums = feature_map.of_sums(feature_sums(feature_map, X, signs, virtual.membership))
    weights, intercept = solve_features(
        sums,
        feature_map.transform(virtual.centers),
        ClusterTerms.of(virtual),
        settings.setting,
        settings.solver,
    )
    return feature_map.model(weights, intercept)


def check_model(
    model: Model, setting: Setting, X: Features | None = None, names: Any = None
) -> None:
    """Refuse a model that is not finite, and say what it comes from."""
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
    """Return W and b of features that are as many as the rows: in the dual, K = Psi Psi^T."""
    _require_room(X, settings.solver)
    rows, centers = feature_map.transform(X), feature_map.transform(virtual.centers)
    inner = LinearKernel("linear").base
    coef, _, intercept = _solve_kernel(
        inner(rows),
        inner(centers, rows),
        None,
        signs,
        virtual,
        settings.setting,
        settings.solver,
    )
    return rows.T @ coef, intercept


def solve_features(
    sums: Statistics,
    of_centers: Array,
    terms: ClusterTerms,
    setting: Setting,
    solver: str,
) -> tuple[Array, Array]:
    """Return W and b for features of which the sums are known; "auto" is Cholesky."""
    weights = (setting.alpha, setting.beta, setting.gamma)
    if solver != "spectral":
        return solve_primal(sums, of_centers, terms, *weights)
    rotation = Rotation.of_gram(sums.gram)
    problem = rotation.problem(sums.cross, of_centers, sums.cluster_sums, terms)
    rotated, intercept, _ = solve_spectral(problem, *weights)
    return rotation.vectors @ rotated, intercept


def fit_kernel(
    X: Features, signs: Array, virtual: VirtualExamples, settings: FitSettings
) -> KernelModel:
    """Fit the exact kernel model.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
    signs : array of shape (n_samples, q)
    virtual : VirtualExamples
    settings : FitSettings
    """
    kernel, solver = settings.kernel, settings.solver
    if solver == "auto" and not kernel.is_semidefinite:
        solver = "spectral"
    _require_room(X, solver)
    origin = kernel.origin(X)
    kept = moved_by(X, origin)
    rows, centers = astype(kept, "float64"), moved_by(virtual.centers, origin)
    base = kernel.base(rows)
    width = choose_width(kernel, base, settings.width, settings.width_scale)
    K = kernel.finish(base, width)
    K_centers = kernel.finish(kernel.base(centers, rows), width)
    augmented = settings.span == "augmented"
    K_between = kernel.finish(kernel.base(centers), width) if augmented else None
    coef, center_coef, intercept = _solve_kernel(
        K, K_centers, K_between, signs, virtual, settings.setting, solver
    )
    return KernelModel(
        kernel=kernel,
        width=width,
        origin=origin,
        rows=kept,
        centers=centers if augmented else None,
        coef=coef,
        center_coef=center_coef if augmented else None,
        intercept=intercept,
    )


def _solve_kernel(
    K: Array,
    K_centers: Array,
    K_between: Array | None,
    signs: Array,
    virtual: VirtualExamples,
    setting: Setting,
    solver: str,
) -> tuple[Array, Array, Array]:
    """Return A, A_z and b; "auto" is Cholesky, and spectral where that would lose digits."""
    weights = (setting.alpha, setting.beta, setting.gamma)
    if solver != "spectral":
        try:
            solution = solve_dual(K, K_centers, signs, virtual, *weights, K_between)
            return solution.coef, solution.center_coef, solution.intercept
        except np.linalg.LinAlgError as error:
            if solver == "cholesky":
                raise np.linalg.LinAlgError(
                    f"solver='cholesky': {error}; use solver='auto' or 'spectral'"
                ) from error
    kernel_map = KernelMap.fit(K)
    warn_if_indefinite(kernel_map.negative)
    cross = kernel_map.train_sums(signs.T)
    problem = kernel_problem(kernel_map, cross, K_centers, virtual, K_between)
    inner, intercept, outer = solve_spectral(problem, *weights)
    # phi(z) outside the span is phi(z) less its projection, which the rows express.
    inner = inner - problem.factors[: outer.shape[0], :].T @ outer
    return kernel_map.basis @ inner, outer, intercept


def _require_room(X: Features, solver: str) -> None:
    n_bytes = 8.0 * FIT_MATRICES[solver] * X.shape[0] ** 2
    require_memory(n_bytes, X, f"the exact model of {X.shape[0]} rows", REMEDY)
