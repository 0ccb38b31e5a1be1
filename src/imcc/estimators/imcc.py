"""IMCCClassifier: the method as a scikit-learn classifier; read the parameters, fit, store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if

from imcc._backend.array import Array, asarray, moved_record, namespace
from imcc._backend.device import explained_memory_errors, on_device
from imcc._core.clustering import split_n_clusters
from imcc._core.fitting import FitSettings, FittedModel, fit_arrays
from imcc._core.kernels import check_kernel
from imcc._core.maps import check_approximation
from imcc._core.models import SOLVERS, SPANS, KernelModel, Setting
from imcc._stream.fitting import StreamState, add_rows, find_source, fit_stream
from imcc._utils.errors import InvalidArgumentError
from imcc._utils.validation import (
    Features,
    check_choice,
    check_count,
    check_features,
    check_finite_result,
    check_number,
    check_sample_weight,
    check_weighted,
    draw_seed,
)
from imcc.estimators.base import ScoringClassifierMixin, restore_on_failure


def _has_features(self: Any) -> bool:
    if self.approximation is None and self.kernel != "linear":
        raise AttributeError(
            "partial_fit needs a model that does not grow with the rows: set "
            "approximation='nystroem' (or 'fourier'), or kernel='linear'"
        )
    return True


class IMCCClassifier(ScoringClassifierMixin, BaseEstimator):
    """Multi-label classifier that learns from rows and from the centres of their clusters.

    The rows are clustered; each cluster centre becomes a virtual example whose soft labels are the
    mean labels of its members.  A (kernel) least-squares model is then trained on both, with a term
    that pulls the output of each row towards that of its centre::

        1/2 |f(X) - Y|^2 + alpha/2 |f(Z) - T|^2 + beta/2 |W|^2 + gamma/2 |f(X) - f(Z of X)|^2

    where f(x) = psi(x) W + b, Y is in {-1, +1}, and Z, T are centres and soft labels.  The solution
    is in closed form, so ``fit`` has no iterations and no learning rate.

    Parameters
    ----------
    n_clusters : int, sequence of int or None, default=None
        Number of virtual examples.  A sequence gives several clusterings at once, whose virtual
        examples are used together (``gamma`` is shared out over them).  None is 32, or whatever
        the ``clusterer`` is set to.
    alpha : float, default=1.0
        Weight of the virtual examples, >= 0.
    beta : float, default=1.0
        Weight of the penalty on the model's complexity, > 0.
    gamma : float, default=0.1
        Weight of the pull towards the centre, >= 0.  (Not the kernel's parameter: that is
        ``width``.)
    kernel : str or callable, default="rbf"
        "rbf" (the paper's), "laplacian", "chi2", "linear", or any other name or callable of
        :func:`sklearn.metrics.pairwise.pairwise_kernels`.  Worth searching, with its width: see
        :class:`IMCCClassifierCV`.
    kernel_params : dict or None, default=None
        Parameters for kernels other than the four named above.
    width : "mean_distance" or float, default="mean_distance"
        Width of the rbf, laplacian or chi2 kernel: the mean pairwise distance of the training rows
        in the kernel's own metric (the paper's rule), or a positive number.
    width_scale : float, default=1.0
        Factor on the width.
    approximation : {"nystroem", "fourier"} or None, default=None
        What stands in for the kernel.  None is the kernel itself, whose ``fit`` grows with the cube
        of the rows and whose model keeps them all.  "nystroem" takes the kernel's values with
        ``n_components`` landmarks as features, "fourier" random waves (rbf and laplacian only):
        ``fit`` grows with the rows, and the model does not.
    n_components : int or None, default=None
        Number of features of the approximation; None is 1000 for Nyström (or as many as there are
        landmarks) and 4000 for Fourier.
        Nyström with all rows as landmarks is the exact model.
    landmarks : {"kmeans", "random"} or array of shape (n_components, n_features), default="kmeans"
        Nyström's landmarks: centres of k-means on a sample of the rows, rows at random, or these.
    clusterer : scikit-learn clusterer, array of shape (n_clusters, n_features) or None
        None is k-means with k-means++ starts.  A clusterer is cloned and fitted on the rows; an
        explicit ``n_clusters`` is passed on to it.  Its centres are not used, only its labels:
        virtual examples are means of their members.  A row labelled -1 (noise) becomes a cluster of
        its own.  An array is prototypes: each row belongs to the nearest.
    lloyd_passes : int, default=0
        On a stream, k-means starts with mini-batches on a sample of the rows; this many passes over
        all rows then move the centres to the means of their rows.
    span : {"train", "augmented"}, default="train"
        Where the model may lie: in the span of the training rows (the paper's), or of rows and
        centres, where the objective is never larger.  The same for the linear kernel.
    solver : {"auto", "cholesky", "spectral"}, default="auto"
        How the closed form is computed.  "cholesky" is the fast one, "spectral" copes with
        ill-conditioned and indefinite kernel matrices; "auto" takes the first and changes to the
        second where digits would be lost.
    random_state : int, RandomState instance or None, default=None
        Seed of the clustering.
    device : str or None, default=None
        Where to compute, as torch names it: "cuda" is the GPU (through torch, or else CuPy).  None
        is where the rows are: the CPU for NumPy's, the device for those of torch and CuPy.  What
        comes out is of the kind of what went in, wherever it was computed.  On a device k-means is
        this library's own and finds other clusters than scikit-learn's on the CPU; with
        ``clusterer=KMeans(n_init=1)`` they are the same.  The chunks of a stream are moved to the
        device one after the other, and give the same model there.  Not for ``fit`` on Dask.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The virtual examples.
    soft_labels_ : ndarray of shape (n_clusters, n_labels)
        Their labels, between -1 and +1.
    cluster_sizes_ : ndarray of shape (n_clusters,)
        Rows in each cluster; with ``sample_weight``, the sum of their weights.
    assignment_ : ndarray of shape (n_samples,) or (n_samples, n_clusterings)
        The cluster of each training row (not with an approximation or from a stream, where the
        model does not grow with the rows).
    coef_ : ndarray of shape (n_labels, n_features) or (n_labels, n_components)
        Weights (linear kernel, and approximation="fourier").
    dual_coef_ : ndarray of shape (n_samples, n_labels) or (n_components, n_labels)
        Weights of the training rows, or of the landmarks (other kernels).
    landmarks_ : ndarray or CSR matrix of shape (n_components, n_features)
        The landmarks (approximation="nystroem").
    center_dual_coef_ : ndarray of shape (n_clusters, n_labels)
        Weights of the centres (other kernels, ``span="augmented"`` only).
    intercept_ : ndarray of shape (n_labels,)
    width_ : float or None
        The kernel's width, ``width_scale`` included; None for kernels without one.
    classes_ : ndarray
        ``arange(n_labels)``, or the classes of a 1-D target.
    label_names_ : ndarray of str or None
        The columns of Y when it was a data frame, or the labels when it was sets of them.
    target_kind_ : {"multilabel", "binary", "multiclass"}
        What y was: an indicator matrix, or a vector of at most two or of more classes.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        When X was a data frame with string column names.

    See Also
    --------
    IMCCClassifierCV : Chooses the parameters by an exact search over a whole grid.

    Notes
    -----
    Dense and CSR input is used as it is; other sparse formats are converted.  float32 rows are kept
    and scored in float32; kernel matrix and solution are computed in float64 always, since
    their condition (up to n / beta) would use up the digits of float32.

    With ``sample_weight``, the first and the last sum of the objective are weighted, and so are the
    means that virtual examples are and the mean distance that the width is: for a given clustering,
    a row of weight 2 is two rows.  Rows of weight 0 are left out; the model does not have them.

    A label that is NaN in some rows is fitted on the other rows, as if these were all: rows of
    which it is not known take no part in its loss, in its virtual examples or in its pull.  Only
    the clusters, the width and an approximation are those of all rows; ``soft_labels_`` is 0 where
    no row of a cluster has a known label.  Labels that are known in the same rows share a
    factorisation; each further pattern of known rows costs another one (a warning says so for more
    than 20).  Not with ``span="augmented"`` or on streams.

    A 1-D y works as well: its classes are coded one-hot inside, the best-scored one comes out.

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
        span: str = "train",
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
        self.span = span
        self.solver = solver
        self.random_state = random_state
        self.device = device

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> IMCCClassifier:
        """Cluster the rows and solve for the model.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features), or a stream
            With an approximation or the linear kernel, also a stream, which is never in memory as
            a whole: a memory-mapped array, a Dask array or data frame, :func:`imcc.open_stream`, or
            any iterable of pairs (X, y) that can be read several times, or a function that gives
            one.
            An array of torch or CuPy, alone or as a chunk, is worked on where it is.
        y : array-like, data frame or sparse matrix of shape (n_samples, n_labels), or (n_samples,)
            Labels coded {0, 1}, {-1, +1} or boolean; a set (or list of names) of labels per row,
            whose columns are the labels that occur, sorted (``label_names_``); or one class per
            row.  None for a stream that has them.  NaN in a dense indicator matrix is a label
            that is not known: see the notes.
        sample_weight : array-like of shape (n_samples,), optional
            How many rows each row counts for, >= 0; all 1 unless given.  Not for a stream, for
            which ``partial_fit`` takes weights.

        Returns
        -------
        self : IMCCClassifier
        """
        settings = self._read_settings()
        self.__dict__.pop("_stream_state", None)
        source = find_source(X, y, settings)
        if source is not None:
            if sample_weight is not None:
                raise InvalidArgumentError(
                    "sample_weight",
                    "cannot be used in fit on a stream: call partial_fit for each chunk, with the "
                    "weights of its rows, or fit on an array in memory",
                )
            return self._store(fit_stream(source, settings))
        X = check_features(self, X, reset=True)
        rows = check_weighted(X, y, sample_weight, type(self).__name__, unknown=True)
        names = getattr(self, "feature_names_in_", None)
        return self._store(fit_arrays(rows.X, rows.target, settings, names, rows.weights))

    @available_if(_has_features)
    @restore_on_failure
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> IMCCClassifier:
        """Train on more rows; the model is that of all rows so far.

        The first call decides on the centres that rows are assigned to (mini-batch k-means), the
        width and the landmarks, from its rows alone: they should be many and in no order.  What
        is given is not decided: with ``clusterer``, ``landmarks`` and ``width`` as arrays and
        number, the model is exactly that of one ``fit`` on all rows, in whatever chunks and order
        they came.  (The virtual examples are the means of all rows so far in any case.)

        Every call solves for the model, so chunks of thousands of rows are better than of tens.
        ``fit`` starts anew.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Moved to the ``device``, if there is one; an array of torch or CuPy is worked on where
            it is.
        y : array-like, data frame or sparse matrix of shape (n_samples, n_labels), or (n_samples,)
            Labels coded {0, 1}, {-1, +1} or boolean; or one class per row.
        classes : array-like, optional
            All classes that will come, for the first call with one class per row; those of an
            earlier ``fit`` unless given.
        sample_weight : array-like of shape (n_samples,), optional
            How many rows each of these rows counts for, >= 0; all 1 unless given.

        Returns
        -------
        self : IMCCClassifier
        """
        settings = self._read_settings()
        before: StreamState | None = self.__dict__.get("_stream_state")
        known = self.__dict__.get("classes_") if classes is None else classes
        X = check_features(self, X, reset=before is None)
        names = getattr(self, "feature_names_in_", None)
        weights = check_sample_weight(sample_weight, X.shape[0])
        fitted, state = add_rows(before, X, y, settings, known, names, weights)
        self._store(fitted)
        self._stream_state = state
        return self

    def _read_settings(self) -> FitSettings:
        """Check the parameters."""
        setting = Setting(
            check_number("alpha", self.alpha, at_least=0),
            check_number("beta", self.beta, above=0),
            check_number("gamma", self.gamma, at_least=0),
        )
        split_n_clusters(self.n_clusters)
        kernel = check_kernel(self.kernel, self.kernel_params, self.width, self.width_scale)
        span = check_choice("span", self.span, SPANS)
        return FitSettings(
            setting=setting,
            kernel=kernel,
            width=self.width,
            width_scale=self.width_scale,
            approximation=check_approximation(
                self.approximation, kernel, self.width, self.n_components, self.landmarks, span
            ),
            n_clusters=self.n_clusters,
            clusterer=self.clusterer,
            lloyd_passes=check_count("lloyd_passes", self.lloyd_passes, at_least=0),
            span=span,
            solver=check_choice("solver", self.solver, SOLVERS),
            seed=draw_seed(self.random_state),
            device=self.device,
        )

    def _store(self, fitted: FittedModel) -> IMCCClassifier:
        # A second fit may be of another kind: nothing of the first one stays.
        for name in (
            *("coef_", "dual_coef_", "center_dual_coef_", "assignment_"),
            "feature_names_in_",
        ):
            self.__dict__.pop(name, None)
        self.n_features_in_ = int(fitted.centers.shape[1])
        if fitted.feature_names is not None:
            self.feature_names_in_ = fitted.feature_names
        self._remember_target(fitted.target)
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
        """The landmarks of Nyström's approximation; not kept twice, since they are in the model."""
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
