"""IMCC without virtual examples: kernel ridge regression with an exact parameter search."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from imcc.estimators.imcc import IMCCClassifier
from imcc.estimators.imcc_cv import PAPER_WEIGHTS, WIDTH_SCALES, IMCCClassifierCV

_SEARCHED = ("beta", "kernel", "width_scale")


class KernelRidgeBaseline(IMCCClassifierCV):
    """Kernel ridge regression on {-1, +1}, which is IMCC with alpha = gamma = 0.

    It minimises ::

        1/2 |phi(X) W + 1 b - Y|^2 + beta/2 |W|^2

    over W and b.  Not part of the paper's comparison; it shows what the virtual examples
    contribute.  beta, the kernel and its width are chosen by the same exact search as in
    :class:`imcc.IMCCClassifierCV`.

    Parameters
    ----------
    betas : sequence of float, default=(1e-3, 1e-2, ..., 1e3)
        Values of the penalty to try.
    kernels : sequence of str or callable, default=("rbf",)
        Kernels to try.
    width_scales : sequence of float, default=(0.25, 0.5, 1.0, 2.0)
        Factors on the width to try, for kernels that have a width.
    cv, scoring, refit, calibrate, n_jobs, device
        As for :class:`imcc.IMCCClassifierCV`.

    Attributes
    ----------
    best_params_ : dict
        ``beta``, ``kernel`` and, if the kernel has a width, ``width_scale``.
    best_score_, best_index_, best_estimator_, cv_results_
        As for :class:`imcc.IMCCClassifierCV`.
    calibration_ : LogisticMaps
        Maps from scores to log-odds; only if ``calibrate=True``.
    classes_, label_names_, target_kind_, n_features_in_, feature_names_in_
        As for :class:`imcc.IMCCClassifier`.

    See Also
    --------
    imcc.IMCCClassifierCV : The same search with virtual examples.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from imcc.baselines import KernelRidgeBaseline
    >>> X, Y = make_multilabel_classification(100, n_classes=3, random_state=0)
    >>> ridge = KernelRidgeBaseline().fit(X, Y)
    >>> sorted(ridge.best_params_)
    ['beta', 'kernel', 'width_scale']
    """

    # The other parameters of the search are fixed.  Virtual examples have weight 0, so one cluster,
    # the cheapest, is enough.
    alphas, gammas, n_clusters, grid = (0.0,), (0.0,), (1,), "default"
    approximation, n_components, landmarks = None, None, "kmeans"
    clusterer, random_state = None, 0

    def __init__(
        self,
        betas: Sequence[float] = PAPER_WEIGHTS,
        *,
        kernels: Sequence[str | Callable[..., float]] = ("rbf",),
        width_scales: Sequence[float] = WIDTH_SCALES,
        cv: Any = 5,
        scoring: str | Sequence[str] = "average_precision",
        refit: bool | str = True,
        calibrate: bool = False,
        n_jobs: int | None = None,
        device: str | None = None,
    ) -> None:
        self.betas = betas
        self.kernels = kernels
        self.width_scales = width_scales
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.calibrate = calibrate
        self.n_jobs = n_jobs
        self.device = device

    def fit(
        self, X: Any, y: Any = None, *, sample_weight: Any = None, groups: Any = None
    ) -> KernelRidgeBaseline:
        """Search beta, kernel and width, then fit the best setting on all rows.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Training rows.
        y : array-like, data frame or sparse matrix of shape (n_samples, n_labels), or (n_samples,)
            Labels coded {0, 1}, {-1, +1} or boolean; or one class per row.  NaN in a dense label
            matrix means that the label is unknown, as for :meth:`imcc.IMCCClassifierCV.fit`.
        sample_weight, groups : array-like of shape (n_samples,), default=None
            Weight and group of each row, as for :meth:`imcc.IMCCClassifierCV.fit`.

        Returns
        -------
        self : KernelRidgeBaseline
            The fitted search.
        """
        super().fit(X, y, sample_weight=sample_weight, groups=groups)
        if hasattr(self, "best_params_"):
            self.best_params_ = {
                name: self.best_params_[name] for name in _SEARCHED if name in self.best_params_
            }
        return self

    def _axes_of(self, params: Mapping[str, Any]) -> dict[str, Any]:
        return {f"{name}s": params[name] for name in _SEARCHED if name in params}

    def estimator_for(self, params: Mapping[str, Any]) -> IMCCClassifier:
        """Return the unfitted model of one setting.

        Parameters
        ----------
        params : mapping
            ``best_params_``, or an entry of ``cv_results_["params"]``.

        Returns
        -------
        IMCCClassifier
        """
        return super().estimator_for({"alpha": 0.0, "gamma": 0.0, "n_clusters": 1, **params})
