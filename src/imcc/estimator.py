"""IMCCClassifier: the method behind scikit-learn's face; validate, cluster, fit, store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from imcc._array import Array, asarray, moved_record, namespace, to_numpy
from imcc._device import explained_memory_errors, on_device
from imcc._validation import (
    Features,
    Target,
    check_choice,
    check_features,
    check_number,
    encode_target,
    label_matrix,
)
from imcc.kernels import Kernel, LinearKernel, resolve_kernel
from imcc.models import (
    REMEDY,
    SOLVERS,
    SPANS,
    KernelModel,
    LinearModel,
    Setting,
    fit_kernel,
    fit_linear,
)
from imcc.virtual import assign_rows, split_n_clusters, virtual_examples


class ScoringClassifierMixin(ClassifierMixin):
    """Predictions, tags and accuracy for classifiers that score every label or class.

    A class that uses it has ``target_kind_``, ``classes_`` and ``_scores(X)``.
    """

    def decision_function(self, X: Any) -> np.ndarray:
        """Score every label of every row.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_labels)
            Real-valued scores; at or above 0 a label is predicted.  For a 1-D training target:
            shape (n_rows, n_classes), or (n_rows,) for at most two classes.  For rows of torch or
            CuPy, an array of that library, on the device of the rows.
        """
        check_is_fitted(self)
        scores = self._scores(X)
        return scores[:, 0] if self.target_kind_ == "binary" else scores

    def predict(self, X: Any) -> np.ndarray:
        """Predict the labels of every row.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_labels)
            1 where the score is at least 0 (Eq. 22), otherwise 0; always a dense integer array,
            whatever the labels were coded as.  For a 1-D training target: shape (n_rows,), the
            best-scored class.  For rows of torch or CuPy, an array of that library, on the device
            of the rows, except where classes are no numbers.
        """
        scores = self.decision_function(X)
        xp = namespace(scores)
        if self.target_kind_ == "multilabel":
            return xp.astype(scores >= 0, xp.int64)
        if self.target_kind_ == "multiclass":
            best = to_numpy(xp.argmax(scores, axis=1))
        else:
            best = np.where(to_numpy(scores) >= 0, len(self.classes_) - 1, 0)
        classes = self.classes_[best]
        return asarray(classes, scores) if classes.dtype.kind in "biuf" else classes

    def score(self, X: Any, y: Any) -> float:
        """Return the share of rows of which all labels are predicted right.

        That is scikit-learn's score of a classifier.  It is a harsh measure for many labels; see
        :mod:`imcc.metrics` for better ones.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_rows, n_features)
        y : array-like
            True labels, coded as for ``fit``.
        """
        predicted, y = to_numpy(self.predict(X)), to_numpy(y)
        return float(accuracy_score(label_matrix(y) if predicted.ndim == 2 else y, predicted))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        return tags

    def _remember_target(self, target: Target) -> None:
        self.target_kind_ = target.kind
        self.classes_ = target.classes
        self.label_names_ = target.label_names

    # Given by the class that uses this one.
    target_kind_: str
    classes_: np.ndarray
    label_names_: np.ndarray | None
    _scores: Callable[[Any], np.ndarray]


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
        Number of virtual examples.  A sequence asks for several clusterings at once, whose virtual
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
    clusterer : scikit-learn clusterer or None, default=None
        None is k-means with k-means++ starts.  A clusterer is cloned and fitted on the rows; an
        explicit ``n_clusters`` is passed on to it.  Its centres are not used, only its labels:
        virtual examples are means of their members.  A row labelled -1 (noise) becomes a cluster of
        its own.
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
        ``clusterer=KMeans(n_init=1)`` they are the same.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The virtual examples.
    soft_labels_ : ndarray of shape (n_clusters, n_labels)
        Their labels, between -1 and +1.
    cluster_sizes_ : ndarray of shape (n_clusters,)
        Rows in each cluster.
    assignment_ : ndarray of shape (n_rows,) or (n_rows, n_clusterings)
        The cluster of each training row.
    coef_ : ndarray of shape (n_labels, n_features)
        Weights (linear kernel only).
    dual_coef_ : ndarray of shape (n_rows, n_labels)
        Weights of the training rows (other kernels).
    center_dual_coef_ : ndarray of shape (n_clusters, n_labels)
        Weights of the centres (other kernels, ``span="augmented"`` only).
    intercept_ : ndarray of shape (n_labels,)
    width_ : float or None
        The kernel's width, ``width_scale`` included; None for kernels without one.
    classes_ : ndarray
        ``arange(n_labels)``, or the classes of a 1-D target.
    label_names_ : ndarray of str or None
        The columns of Y when it was a data frame.
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
        clusterer: Any = None,
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
        self.clusterer = clusterer
        self.span = span
        self.solver = solver
        self.random_state = random_state
        self.device = device

    def fit(self, X: Any, y: Any) -> IMCCClassifier:
        """Cluster the rows and solve for the model.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_rows, n_features)
            Or an array of torch or CuPy, which is worked on where it is.
        y : array-like, data frame or sparse matrix of shape (n_rows, n_labels), or (n_rows,)
            Labels coded {0, 1}, {-1, +1} or boolean; or one class a row.

        Returns
        -------
        self : IMCCClassifier
        """
        setting = Setting(
            check_number("alpha", self.alpha, at_least=0),
            check_number("beta", self.beta, above=0),
            check_number("gamma", self.gamma, at_least=0),
        )
        split_n_clusters(self.n_clusters)
        kernel = check_kernel(self.kernel, self.kernel_params, self.width, self.width_scale)
        check_choice("span", self.span, SPANS)
        check_choice("solver", self.solver, SOLVERS)
        X = check_features(self, X, reset=True)
        target = encode_target(y, X.shape[0], type(self).__name__)
        with explained_memory_errors(f"the model of {X.shape[0]} x {X.shape[1]} rows", REMEDY):
            rows = on_device(X, self.device)
            signs = asarray(target.signs, rows)
            seed = draw_seed(self.random_state)
            assignment = assign_rows(rows, self.n_clusters, self.clusterer, seed)
            virtual = virtual_examples(rows, signs, assignment)
            if isinstance(kernel, LinearKernel):
                model: LinearModel | KernelModel = fit_linear(
                    rows, signs, virtual, setting, self.solver
                )
            else:
                model = fit_kernel(
                    rows,
                    signs,
                    virtual,
                    setting,
                    kernel=kernel,
                    width=self.width,
                    width_scale=self.width_scale,
                    span=self.span,
                    solver=self.solver,
                )
        self._remember_target(target)
        self.cluster_centers_ = asarray(virtual.centers, X)
        self.soft_labels_ = asarray(virtual.soft_labels, X)
        self.cluster_sizes_ = asarray(virtual.sizes, X, "int64")
        self.assignment_ = asarray(assignment[:, 0] if assignment.shape[1] == 1 else assignment, X)
        self._remember_model(moved_record(model, X))
        return self

    def _remember_model(self, model: LinearModel | KernelModel) -> None:
        # A second fit may be of another kind: nothing of the first one stays.
        for name in ("coef_", "dual_coef_", "center_dual_coef_"):
            self.__dict__.pop(name, None)
        self._model = model
        self.intercept_ = model.intercept
        if isinstance(model, LinearModel):
            self.width_ = None
            self.coef_ = model.coef
            return
        self.width_ = model.width
        self.dual_coef_ = model.coef
        if model.center_coef is not None:
            self.center_dual_coef_ = model.center_coef

    def _scores(self, X: Features) -> Array:
        X = check_features(self, X, reset=False)
        with explained_memory_errors(f"scoring {X.shape[0]} rows", "score fewer rows at a time"):
            rows = on_device(X, self.device)
            return asarray(moved_record(self._model, rows).scores(rows), X)


def check_kernel(kernel: Any, kernel_params: Any, width: Any, width_scale: Any = 1.0) -> Kernel:
    """Check the kernel and its width together; return the kernel."""
    resolved = resolve_kernel(kernel, kernel_params)
    check_number("width_scale", width_scale, above=0)
    if isinstance(width, str):
        check_choice("width", width, ["mean_distance"])
    else:
        check_number("width", width, above=0)
    if not resolved.has_width and (width != "mean_distance" or width_scale != 1.0):
        raise ValueError(
            f"kernel={kernel!r} has no width: leave width and width_scale at their defaults "
            f"(got width={width!r}, width_scale={width_scale!r})"
        )
    return resolved


def draw_seed(random_state: Any) -> int:
    """Return a seed that is the same whenever the same integer is given."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
