"""Training on what is no array in memory: streams, memory-mapped arrays, chunk after chunk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if

from imcc._backend.array import asarray, moved_record
from imcc._backend.device import explained_memory_errors, on_device
from imcc._core.approximations import Approximation
from imcc._core.kernels import Kernel, LinearKernel
from imcc._core.models import Model, Setting
from imcc._core.virtual import check_prototypes, split_n_clusters
from imcc._stream.dask import DaskSource
from imcc._stream.fitting import Fitted, Plan, fit_stream, make_rules, solve
from imcc._stream.passes import Rules, Sums, look_at
from imcc._stream.passes import sum_chunk as sums_of
from imcc._stream.sources import Chunk, Layout, Source, as_source, given_as, is_dask, read_layout
from imcc._utils.validation import Target, check_count, check_features, draw_seed
from imcc.estimators.base import restore_on_failure

#: What to do when a chunk does not fit on the device.
REMEDY = "use smaller chunks, or fewer n_components"


@dataclass(frozen=True)
class Asked:
    """The parameters of a fit, checked."""

    setting: Setting
    kernel: Kernel
    approximation: Approximation | None


@dataclass(frozen=True)
class _Progress:
    """What ``partial_fit`` has to remember, in arrays of the kind that was given."""

    rules: Rules
    sums: Sums
    n_chunks: int


def _is_finite_dimensional(self: Any) -> bool:
    if self.approximation is None and self.kernel != "linear":
        raise AttributeError(
            "partial_fit needs a model that does not grow with the rows: set "
            "approximation='nystroem' (or 'fourier'), or kernel='linear'"
        )
    return True


class StreamFitMixin:
    """``partial_fit``, and ``fit`` on anything that gives chunks of rows.

    A class that uses it has the parameters of :class:`imcc.IMCCClassifier`, ``_check_parameters``,
    ``_remember_target`` and ``_remember_model``.
    """

    @available_if(_is_finite_dimensional)
    @restore_on_failure
    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Any:
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
        X : array-like, data frame or sparse matrix of shape (n_rows, n_features)
            Moved to the ``device``, if there is one; an array of torch or CuPy is worked on where
            it is.
        y : array-like, data frame or sparse matrix of shape (n_rows, n_labels), or (n_rows,)
            Labels coded {0, 1}, {-1, +1} or boolean; or one class a row.
        classes : array-like, optional
            All classes that will come, for the first call with one class a row; those of an
            earlier ``fit`` unless given.

        Returns
        -------
        self
        """
        plan = self._plan(self._check_parameters())
        before: _Progress | None = self.__dict__.get("_progress")
        X = check_features(self, X, reset=before is None)
        given = given_as(X)
        with explained_memory_errors(f"the model with {X.shape[0]} more rows", REMEDY):
            X = on_device(X, self.device)
            if before is None:
                chunk = Chunk(0, 0, X, y)
                look = look_at(chunk, plan.sample_size, plan.seed, None)
                known = self.__dict__.get("classes_") if classes is None else classes
                rules = make_rules(look, plan, _check_classes(known, look.layout))
                sums = sums_of(chunk, rules)
            else:
                chunk = Chunk(before.n_chunks, int(before.sums.statistics.n_rows), X, y)
                before.rules.layout.merge(read_layout(chunk, X), chunk)
                rules = before.rules.moved(X)
                sums = moved_record(before.sums, X) + sums_of(chunk, rules)
            rules = replace(rules, given=given)
            fitted = solve(sums, rules, plan)
        self._remember_fitted(fitted)
        self._progress = _Progress(rules.moved(given), moved_record(sums, given), chunk.number + 1)
        return self

    def _fit_source(self, source: Source, asked: Asked) -> Any:
        """Fit in passes over a source."""
        with explained_memory_errors("the model of the stream", REMEDY):
            fitted = fit_stream(source, self._plan(asked))
        layout = fitted.rules.layout
        self.n_features_in_ = layout.n_features
        self.__dict__.pop("feature_names_in_", None)
        if layout.feature_names is not None:
            self.feature_names_in_ = np.array(layout.feature_names, dtype=object)
        self._remember_fitted(fitted)
        return self

    def _find_source(self, X: Any, y: Any, asked: Asked) -> Source | None:
        """Return the source that X and y are; None if they are to be taken as arrays."""
        if is_dask(X) and self.device is not None:
            raise ValueError(
                f"device={self.device!r} cannot be used to train on Dask collections, whose sums "
                "are taken by the workers on their CPUs: use device=None, or a stream of chunks, "
                "which this machine moves to its device"
            )
        source: Source | None = DaskSource(X, y) if is_dask(X) else as_source(X, y)
        can_sum = asked.approximation is not None or isinstance(asked.kernel, LinearKernel)
        if y is not None and not is_dask(X):
            # A memory-mapped array is an array too, for all that needs one.
            can_cluster = self.clusterer is None or isinstance(self.clusterer, np.ndarray)
            return source if can_sum and can_cluster else None
        if source is None or can_sum:
            return source
        raise ValueError(
            f"kernel={self.kernel!r} cannot be trained on a stream: the exact model needs all rows "
            "at once; use approximation='nystroem', or kernel='linear'"
        )

    def _plan(self, asked: Asked) -> Plan:
        counts = split_n_clusters(self.n_clusters)
        prototypes = None
        if isinstance(self.clusterer, np.ndarray):
            count = counts[0] if len(counts) == 1 else sum(c or 0 for c in counts)
            prototypes = check_prototypes(self.clusterer, count, self.clusterer.shape[-1])
        elif self.clusterer is not None:
            raise ValueError(
                f"the clusterer {type(self.clusterer).__name__} cannot be used on a stream, which "
                "is clustered by k-means: use clusterer=None, or an array of prototypes"
            )
        return Plan(
            setting=asked.setting,
            approximation=asked.approximation,
            width_scale=self.width_scale,
            n_clusters=counts,
            prototypes=prototypes,
            lloyd_passes=check_count("lloyd_passes", self.lloyd_passes, at_least=0),
            solver=self.solver,
            seed=draw_seed(self.random_state),
            device=self.device,
        )

    def _remember_fitted(self, fitted: Fitted) -> None:
        layout, classes = fitted.rules.layout, fitted.rules.classes
        kind = "binary" if len(classes) <= 2 else "multiclass"
        names = None
        if layout.kind == "multilabel":
            kind = "multilabel"
            if layout.label_names is not None:
                names = np.array(layout.label_names, dtype=object)
        self._remember_target(Target(np.empty((0, 0)), kind, classes, names))
        # NumPy's chunks give NumPy's arrays, wherever they have been.
        given = fitted.rules.given
        self._remember_model(moved_record(fitted.model, given))
        self.cluster_centers_ = asarray(fitted.centers, given)
        self.soft_labels_ = asarray(fitted.soft_labels, given)
        self.cluster_sizes_ = asarray(fitted.sizes, given, "int64")

    # Given by the class that uses this one.
    kernel: Any
    approximation: str | None
    n_clusters: Any
    clusterer: Any
    width_scale: float
    lloyd_passes: int
    solver: str
    random_state: Any
    device: str | None
    _check_parameters: Callable[[], Asked]
    _remember_target: Callable[[Target], None]
    _remember_model: Callable[[Model], None]


def _check_classes(classes: Any, layout: Layout) -> np.ndarray | None:
    """Return the classes to be expected; None for an indicator matrix."""
    if layout.kind == "multilabel":
        return None
    if classes is None:
        raise ValueError(
            "classes must be given in the first call of partial_fit when y has one class a row: "
            "later chunks may have others"
        )
    return np.unique(np.asarray(classes))
