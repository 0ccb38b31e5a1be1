"""IMCCClassifier: the method of the paper as a scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from imcc._array.array import Array, asarray, moved_record, namespace
from imcc._array.device import explained_memory_errors, on_device
from imcc._math.clustering import split_n_clusters
from imcc._math.fitting import FitSettings, FittedModel, check_approximation, fit_arrays
from imcc._math.kernels import KernelModel, check_kernel
from imcc._math.solver import SOLVERS, Setting
from imcc._math.stream.fitting import fit_stream
from imcc._math.stream.sources import find_source
from imcc._utils.errors import InvalidArgumentError
from imcc._utils.validation import (
    Features,
    Target,
    check_choice,
    check_count,
    check_features,
    check_finite_result,
    check_number,
    check_weighted,
    draw_seed,
)
from imcc.estimators.base import ScoringClassifierMixin


class IMCCClassifier(ScoringClassifierMixin, BaseEstimator):
    """Multi-label classifier with cluster centres as virtual examples (IMCC).

    The rows are clustered; each cluster centre becomes a virtual example whose soft labels are the
    mean labels of its members.  A (kernel) least-squares model is then fitted to the rows and the
    virtual examples, with a term that pulls the output of each row towards that of its centre.  It
    minimises [1]_ ::

        1/2 |f(X) - Y|^2 + alpha/2 |f(Z) - T|^2 + beta/2 |W|^2 + gamma/2 |f(X) - f(Z of X)|^2

    where f(x) = psi(x) W + b, Y is in {-1, +1}, Z are the centres, T their soft labels, and Z of X
    is the centre of each row.  The solution has a closed form, so ``fit`` needs no iterations and
    no learning rate.

    Parameters
    ----------
    n_clusters : int, sequence of int or None, default=None
        Number of virtual examples.  A sequence gives several clusterings whose virtual examples are
        used together (``gamma`` is divided evenly among the clusterings).  None means 32, or the
        number that the ``clusterer`` is configured with.
    alpha : float, default=1.0
        Weight of the virtual examples, >= 0.
    beta : float, default=1.0
        Weight of the penalty on the coefficients, > 0.
    gamma : float, default=0.1
        Weight of the term that pulls rows towards their centre, >= 0.  It is not a parameter of the
        kernel, see ``width``.
    kernel : str or callable, default="rbf"
        "rbf" (as in the paper), "laplacian", "chi2", "linear", or any other metric of
        :func:`sklearn.metrics.pairwise.pairwise_kernels`.  Kernel and width matter;
        :class:`IMCCClassifierCV` can search them.
    kernel_params : dict or None, default=None
        Parameters of kernels other than the four named above.
    width : "mean_distance" or float, default="mean_distance"
        Width of the rbf, laplacian and chi2 kernels: the mean pairwise distance of the training
        rows in the kernel's own metric (the rule of the paper), or a positive number.
    width_scale : float, default=1.0
        Factor by which the width is multiplied.
    approximation : {"nystroem"} or None, default=None
        Approximation of the kernel.  None uses the exact kernel: the time of ``fit`` is cubic in
        the number of rows, and the model stores all rows.  "nystroem" uses the kernel with
        ``n_components`` landmarks as features: the time of ``fit`` is linear in the number of rows,
        and the size of the model does not depend on it.
    n_components : int or None, default=None
        Number of landmarks.  None means 1000, or the number of landmarks if they are given.  With
        all rows as landmarks, the model is the exact one.
    landmarks : {"kmeans", "random"} or array of shape (n_components, n_features), default="kmeans"
        Landmarks of the Nyström approximation: k-means centres of a sample of the rows, randomly
        chosen rows, or the given points.
    clusterer : scikit-learn clusterer, array of shape (n_clusters, n_features) or None, \
default=None
        None is k-means with k-means++ initialisation.  A clusterer is cloned and fitted to the
        rows; an explicit ``n_clusters`` is set on it.  Only its labels are used, not its centres:
        virtual examples are the means of their members.  Each row with the label -1 (noise) becomes
        a cluster of its own.  An array contains prototypes: each row belongs to the nearest one.
    lloyd_passes : int, default=0
        For streams only.  k-means is initialised with mini-batches on a sample of the rows; this is
        the number of passes over all rows that then move the centres to the means of their rows.
    solver : {"auto", "cholesky", "spectral"}, default="auto"
        How the closed form is computed.  "cholesky" is fast, "spectral" handles ill-conditioned and
        indefinite kernel matrices, and "auto" uses the first and falls back to the second where
        accuracy would be lost.
    random_state : int, RandomState instance or None, default=None
        Controls the clustering and the random choices of the approximation.
    device : str or None, default=None
        Device to compute on, as torch names it: "cuda" is the GPU (through torch, or CuPy if torch
        is not installed).  None computes where the rows are: on the CPU for NumPy arrays, on their
        device for torch and CuPy arrays.  The output is of the same library and on the same device
        as the input.  On a device, k-means is implemented in this library and finds other clusters
        than scikit-learn on the CPU; with ``clusterer=KMeans(n_init=1)`` they are the same.  Chunks
        of a stream are moved to the device one at a time, with the same result.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The virtual examples.
    soft_labels_ : ndarray of shape (n_clusters, n_labels)
        Labels of the virtual examples, between -1 and +1.
    cluster_sizes_ : ndarray of shape (n_clusters,)
        Number of rows per cluster; with ``sample_weight``, the sum of their weights.
    assignment_ : ndarray of shape (n_samples,) or (n_samples, n_clusterings)
        Cluster of each training row.  Not available with an approximation or from a stream.
    coef_ : ndarray of shape (n_labels, n_features)
        Coefficients of the features, with ``kernel="linear"``.
    dual_coef_ : ndarray of shape (n_samples, n_labels) or (n_components, n_labels)
        Coefficients of the training rows, or of the landmarks, for other kernels.
    landmarks_ : ndarray or CSR matrix of shape (n_components, n_features)
        Landmarks of the Nyström approximation.
    intercept_ : ndarray of shape (n_labels,)
        Intercept of each label.
    width_ : float or None
        Width of the kernel, multiplied by ``width_scale``; None for kernels without a width.
    classes_ : ndarray
        ``arange(n_labels)``, or the classes of a 1-D target.
    label_names_ : ndarray of str or None
        Names of the labels, if y was a data frame or contained a set of labels per row.
    target_kind_ : {"multilabel", "binary", "multiclass"}
        Type of y: an indicator matrix, or a vector with at most two or with more classes.
    n_features_in_ : int
        Number of features seen during ``fit``.
    feature_names_in_ : ndarray of str
        Names of the features seen during ``fit``.  Defined only if X has string column names.

    See Also
    --------
    IMCCClassifierCV : Selects the parameters by an exact search over a grid.
    KernelEnsembleClassifier : Ensemble of kernel models with probabilities.

    Notes
    -----
    Dense and CSR input is used without conversion; other sparse formats are converted to CSR.
    float32 rows are stored, and their scores returned, in float32.  Kernel values, solution and
    scores are computed in float64, since the condition number (up to n / beta) is too large for
    float32; only on a device are float32 rows scored in float32.

    With ``sample_weight``, the first and the last sum of the objective are weighted, and so are the
    means that define the virtual examples and the width: for a given clustering, a row of weight 2
    is equivalent to two rows.  Rows of weight 0 are ignored.

    A label that is NaN in some rows is fitted to the other rows only: the rows in which it is
    unknown do not contribute to its loss, its virtual examples or its gamma term.  Clusters, width
    and approximation are computed from all rows; ``soft_labels_`` is 0 where the label is unknown
    in all rows of a cluster.  Labels that are known in the same rows share a factorisation; each
    further pattern of known rows needs another one (with a warning for more than 20).  Unknown
    labels are not supported on streams.

    The classes of a 1-D y are encoded as one label per class; the class with the highest score is
    predicted.

    References
    ----------
    .. [1] S. Shu, F. Lv, Y. Yan, L. Li, S. He, J. He. "Incorporating multiple cluster centers for
       multi-label learning." Information Sciences 590, 2022.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from imcc import IMCCClassifier
    >>> X, Y = make_multilabel_classification(200, n_classes=4, random_state=0)
    >>> clf = IMCCClassifier(n_clusters=8, random_state=0).fit(X[:150], Y[:150])
    >>> clf.decision_function(X[150:]).shape
    (50, 4)
    >>> clf.cluster_centers_.shape, clf.soft_labels_.shape
    ((8, 20), (8, 4))
    >>> clf.predict(X[150:152])
    array([[0, 0, 0, 1],
           [1, 1, 1, 0]])
    """

    def __init__(
        self,
        n_clusters: int | Sequence[int] | None = None,
        alpha: float = 1.0,
        beta: float = 1.0,
        gamma: float = 0.1,
        *,
        kernel: str | Callable[..., float] = "rbf",
        kernel_params: Mapping[str, Any] | None = None,
        width: str | float = "mean_distance",
        width_scale: float = 1.0,
        approximation: str | None = None,
        n_components: int | None = None,
        landmarks: Any = "kmeans",
        clusterer: Any = None,
        lloyd_passes: int = 0,
        solver: str = "auto",
        random_state: Any = None,
        device: str | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.alpha = alpha
        self.beta = beta
        self.gamma = gamma
        self.kernel = kernel
        self.kernel_params = kernel_params
        self.width = width
        self.width_scale = width_scale
        self.approximation = approximation
        self.n_components = n_components
        self.landmarks = landmarks
        self.clusterer = clusterer
        self.lloyd_passes = lloyd_passes
        self.solver = solver
        self.random_state = random_state
        self.device = device

    def fit(
        self, X: Any, y: Any = None, *, sample_weight: Any = None, groups: Any = None
    ) -> IMCCClassifier:
        """Cluster the rows and fit the model.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features), or a stream
            Training rows.  With an approximation or the linear kernel, a stream is also accepted,
            which is never loaded into memory as a whole: a memory-mapped array, any iterable
            of pairs (X, y) that can be iterated over several times, or a function that returns an
            iterable of pairs.  Arrays of torch and CuPy, also as chunks of a stream, are processed
            on their device.
        y : array-like, data frame or sparse matrix of shape (n_samples, n_labels), or \
(n_samples,), default=None
            Labels coded {0, 1}, {-1, +1} or boolean; a set or list of labels per row, which becomes
            an indicator matrix of the sorted labels (``label_names_``); or one class per row.  NaN
            in a dense indicator matrix is an unknown label, see Notes.  None for a stream that
            contains the labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights, >= 0.  None means weight 1.  Not supported for streams.
        groups : None
            Not supported, because no rows are held out.

        Returns
        -------
        self : IMCCClassifier
            The fitted classifier.
        """
        self._refuse_groups(groups)
        settings = self._read_settings()
        # A stream brings its labels along, or is a memory-mapped array.
        is_stream = y is None or isinstance(X, np.memmap)
        source = find_source(X, y, settings) if is_stream else None
        if source is not None:
            if sample_weight is not None:
                raise InvalidArgumentError(
                    "sample_weight",
                    "is not supported for fit on a stream: fit on an array in memory",
                )
            return self._store(*fit_stream(source, settings))
        X = check_features(self, X, reset=True)
        rows = check_weighted(X, y, sample_weight, type(self).__name__, unknown=True)
        names = getattr(self, "feature_names_in_", None)
        fitted = fit_arrays(rows.X, rows.target, settings, names, rows.weights)
        return self._store(fitted, rows.target, names)

    def _read_settings(self) -> FitSettings:
        """Check the parameters and return them as settings."""
        setting = Setting(
            check_number("alpha", self.alpha, at_least=0),
            check_number("beta", self.beta, above=0),
            check_number("gamma", self.gamma, at_least=0),
        )
        split_n_clusters(self.n_clusters)
        kernel = check_kernel(self.kernel, self.kernel_params, self.width, self.width_scale)
        return FitSettings(
            setting=setting,
            kernel=kernel,
            width=self.width,
            width_scale=self.width_scale,
            approximation=check_approximation(
                self.approximation, kernel, self.width, self.n_components, self.landmarks
            ),
            n_clusters=self.n_clusters,
            clusterer=self.clusterer,
            lloyd_passes=check_count("lloyd_passes", self.lloyd_passes, at_least=0),
            solver=check_choice("solver", self.solver, SOLVERS),
            seed=draw_seed(self.random_state),
            device=self.device,
        )

    def _store(
        self, fitted: FittedModel, target: Target, feature_names: np.ndarray | None
    ) -> IMCCClassifier:
        # A second fit may be of another kind: remove all attributes of the first one.
        for name in ("coef_", "dual_coef_", "assignment_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        self.n_features_in_ = int(fitted.centers.shape[1])
        if feature_names is not None:
            self.feature_names_in_ = feature_names
        self._remember_target(target)
        self._model = fitted.model
        self.intercept_ = fitted.model.intercept
        self.width_ = fitted.model.width
        for name, coefficients in fitted.model.coefficients.items():
            setattr(self, name, coefficients)
        self.cluster_centers_ = fitted.centers
        self.soft_labels_ = fitted.soft_labels
        self.cluster_sizes_ = fitted.sizes
        if fitted.assignment is not None:
            self.assignment_ = fitted.assignment
        return self

    @property
    def landmarks_(self) -> Features:
        """Landmarks of the Nyström approximation, shape (n_components, n_features)."""
        # Computed from the model instead of stored a second time.
        model = self.__dict__.get("_model")
        if self.approximation != "nystroem" or not isinstance(model, KernelModel):
            raise AttributeError("landmarks_ exists only after fit with approximation='nystroem'")
        moved, origin = model.rows, model.origin
        return moved if origin is None else moved + namespace(moved).astype(origin, moved.dtype)

    def _scores(self, X: Features) -> Array:
        X = check_features(self, X, reset=False)
        with explained_memory_errors(f"scoring {X.shape[0]} rows", "score fewer rows at a time"):
            rows = on_device(X, self.device)
            scores = asarray(moved_record(self._model, rows).scores(rows), X)
        names = getattr(self, "feature_names_in_", None)
        return check_finite_result(scores, "the scores", X=X, names=names)
