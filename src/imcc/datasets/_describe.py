"""What is in a data set: the columns of the paper's Table 2, label imbalance and flaws."""

from __future__ import annotations

import html
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from imcc._utils.validation import check_number
from imcc.datasets._dataset import Dataset
from imcc.datasets._errors import listed


@dataclass(frozen=True)
class CoOccurrence:
    """Two labels that occur together.

    Attributes
    ----------
    first, second : str
        The labels.
    count : int
        How many rows have both.
    jaccard : float
        That number divided by the number of rows that have one or both.
    """

    first: str
    second: str
    count: int
    jaccard: float


@dataclass(frozen=True)
class Description:
    """The facts of a data set.

    Attributes
    ----------
    name : str
        Its name.
    n_rows, n_features, n_labels : int
        Its sizes; ``|D|``, ``dim(D)`` and ``L(D)`` of the paper.
    feature_type : {"numeric", "nominal"}
        "nominal" if every feature is 0 or 1; F(D).
    cardinality : float
        Labels a row; LCard(D).
    density : float
        The cardinality divided by the number of labels; LDen(D).
    n_label_sets : int
        Distinct label sets; DL(D).
    label_set_proportion : float
        Distinct label sets divided by rows; PDL(D).
    label_counts : dict of str to int
        How many rows have each label.
    labels_never_on, labels_always_on : tuple of str
        Labels that say nothing.
    mean_imbalance, max_imbalance : float
        Over the labels that occur: how much rarer they are than the commonest, on average and at
        worst.
    duplicate_rows : int
        Rows whose features are those of an earlier row.
    conflicting_rows : int
        Of those, rows whose labels differ from the earlier row's.
    all_zero_rows : int
        Rows whose features are all 0.
    unlabelled_rows : int
        Rows without any label.
    missing_values : int
        Feature values that are NaN.
    co_occurrences : tuple of CoOccurrence
        The pairs of labels that occur together most, by their Jaccard index.
    """

    name: str
    n_rows: int
    n_features: int
    n_labels: int
    feature_type: str
    cardinality: float
    density: float
    n_label_sets: int
    label_set_proportion: float
    label_counts: dict[str, int]
    labels_never_on: tuple[str, ...]
    labels_always_on: tuple[str, ...]
    mean_imbalance: float
    max_imbalance: float
    duplicate_rows: int
    conflicting_rows: int
    all_zero_rows: int
    unlabelled_rows: int
    missing_values: int
    co_occurrences: tuple[CoOccurrence, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python objects, ready for JSON."""
        facts = asdict(self)
        # JSON has no NaN: without any label there is no ratio.
        return {name: None if value != value else value for name, value in facts.items()}

    def facts(self) -> list[tuple[str, str]]:
        """Return the facts, one per line, as (name, value)."""
        return [
            ("rows", str(self.n_rows)),
            ("features", f"{self.n_features} ({self.feature_type})"),
            ("labels", str(self.n_labels)),
            ("cardinality", f"{self.cardinality:.3f}"),
            ("density", f"{self.density:.3f}"),
            ("distinct label sets", f"{self.n_label_sets} ({self.label_set_proportion:.3f} a row)"),
            (
                "imbalance ratio",
                f"{self.mean_imbalance:.2f} mean, {self.max_imbalance:.2f} largest",
            ),
            ("labels never on", _counted(self.labels_never_on)),
            ("labels always on", _counted(self.labels_always_on)),
            (
                "duplicate rows",
                f"{self.duplicate_rows} ({self.conflicting_rows} with other labels)",
            ),
            ("all-zero rows", str(self.all_zero_rows)),
            ("rows without labels", str(self.unlabelled_rows)),
            ("missing values", str(self.missing_values)),
        ]

    def __str__(self) -> str:
        width = max(len(name) for name, _ in self.facts())
        lines = [self.name, *(f"  {name:<{width}}  {value}" for name, value in self.facts())]
        if self.co_occurrences:
            lines.append("  strongest co-occurrences (rows with both, Jaccard index)")
        lines += [
            f"    {pair.first} + {pair.second}: {pair.count}, {pair.jaccard:.3f}"
            for pair in self.co_occurrences
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return a table for notebooks."""
        rows = "".join(
            f"<tr><th>{name}</th><td>{html.escape(value)}</td></tr>" for name, value in self.facts()
        )
        return f"<table><caption>{html.escape(self.name)}</caption>{rows}</table>"


def _counted(names: tuple[str, ...]) -> str:
    return f"{len(names)} ({listed(names)})" if names else "0"


def describe(dataset: Dataset, *, n_pairs: int = 10) -> Description:
    """Return the facts of a data set.

    Parameters
    ----------
    dataset : Dataset
        The data.
    n_pairs : int
        How many of the strongest label co-occurrences to give.

    Examples
    --------
    >>> from imcc.datasets import describe, load_dataset
    >>> facts = describe(load_dataset("yeast"))
    >>> facts.n_label_sets, round(facts.cardinality, 3), round(facts.density, 3)
    (198, 4.237, 0.303)
    >>> facts.co_occurrences[0]
    CoOccurrence(first='Class12', second='Class13', count=1799, jaccard=0.99...)
    """
    if not isinstance(dataset, Dataset):
        raise TypeError(f"dataset must be a Dataset, got {type(dataset).__name__}")
    if dataset.n_rows == 0:
        raise ValueError(f"the data set {dataset.name!r} has no rows to describe")
    check_number("n_pairs", n_pairs, at_least=0)
    counts = dataset.Y.sum(axis=0)
    present = counts[counts > 0]
    ratios = present.max() / present if present.size else np.array([np.nan])
    values = dataset.X.data if dataset.is_sparse else dataset.X
    zero_rows = (dataset.X != 0).sum(axis=1) == 0
    duplicates, conflicts = _duplicates(dataset)
    return Description(
        name=dataset.name,
        n_rows=dataset.n_rows,
        n_features=dataset.n_features,
        n_labels=dataset.n_labels,
        feature_type=_feature_type(values),
        cardinality=dataset.cardinality,
        density=dataset.density,
        n_label_sets=dataset.n_label_sets,
        label_set_proportion=dataset.n_label_sets / dataset.n_rows,
        label_counts=dict(zip(dataset.label_names, counts.tolist(), strict=True)),
        labels_never_on=_named(dataset, counts == 0),
        labels_always_on=_named(dataset, counts == dataset.n_rows),
        mean_imbalance=float(ratios.mean()),
        max_imbalance=float(ratios.max()),
        duplicate_rows=duplicates,
        conflicting_rows=conflicts,
        all_zero_rows=int(np.count_nonzero(zero_rows)),
        unlabelled_rows=int(np.count_nonzero(dataset.Y.sum(axis=1) == 0)),
        missing_values=int(np.count_nonzero(np.isnan(values))),
        co_occurrences=_strongest(dataset, int(n_pairs)),
    )


def co_occurrence_counts(dataset: Dataset) -> np.ndarray:
    """Return the matrix of how many rows have both of two labels; the labels' own counts within."""
    Y = dataset.Y.astype(np.float64)  # products of floats are many times faster, and exact here
    return (Y.T @ Y).astype(np.int64)


def _feature_type(values: np.ndarray) -> str:
    return "nominal" if np.all((values == 0) | (values == 1) | np.isnan(values)) else "numeric"


def _named(dataset: Dataset, mask: np.ndarray) -> tuple[str, ...]:
    return tuple(dataset.label_names[i] for i in np.flatnonzero(mask))


def _duplicates(dataset: Dataset) -> tuple[int, int]:
    """Return the number of rows that repeat an earlier one, and of those with other labels."""
    first: dict[bytes, int] = {}
    duplicates = conflicts = 0
    for row, key in enumerate(_row_keys(dataset.X)):
        earlier = first.setdefault(key, row)
        if earlier != row:
            duplicates += 1
            conflicts += int(not np.array_equal(dataset.Y[earlier], dataset.Y[row]))
    return duplicates, conflicts


def _row_keys(X: Any) -> list[bytes]:
    if not sp.issparse(X):
        return [row.tobytes() for row in X + 0.0]  # -0.0 becomes 0.0
    keys = []
    for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        keys.append(X.indices[start:stop].tobytes() + X.data[start:stop].tobytes())
    return keys


def _strongest(dataset: Dataset, n_pairs: int) -> tuple[CoOccurrence, ...]:
    together = co_occurrence_counts(dataset)
    counts = np.diag(together)
    first, second = np.triu_indices(dataset.n_labels, k=1)
    both = together[first, second]
    either = counts[first] + counts[second] - both
    jaccard = both / np.maximum(either, 1)
    # Of equal strength, the commoner pair comes first, then the order of the labels.
    order = np.lexsort((-both, -jaccard))[:n_pairs]
    return tuple(
        CoOccurrence(
            dataset.label_names[first[i]],
            dataset.label_names[second[i]],
            int(both[i]),
            float(jaccard[i]),
        )
        for i in order
        if both[i] > 0
    )
