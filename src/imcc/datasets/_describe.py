"""Summary of a data set: the columns of Table 2 of the paper, label imbalance and problems."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from imcc._utils.plain import to_plain
from imcc.datasets._dataset import Dataset
from imcc.datasets._errors import listed


@dataclass(frozen=True)
class Description:
    """Summary of a data set.

    Attributes
    ----------
    name : str
        Name of the data set.
    n_rows, n_features, n_labels : int
        Numbers of rows, features and labels; ``|D|``, ``dim(D)`` and ``L(D)`` of the paper.
    feature_type : {"numeric", "nominal"}
        "nominal" if all features are 0 or 1 (or NaN); F(D).
    cardinality : float
        Mean number of labels per row; LCard(D).
    density : float
        Cardinality divided by the number of labels; LDen(D).
    n_label_sets : int
        Number of distinct label sets; DL(D).
    label_set_proportion : float
        Number of distinct label sets divided by the number of rows; PDL(D).
    label_counts : dict of str to int
        Number of rows with each label.
    labels_never_on, labels_always_on : tuple of str
        Labels of no row and of all rows.
    mean_imbalance, max_imbalance : float
        Mean and maximum, over the labels that occur, of the count of the most frequent label
        divided by the count of the label; NaN if no label occurs.
    duplicate_rows : int
        Number of rows with the same features as an earlier row.
    conflicting_rows : int
        Number of duplicate rows whose labels differ from those of the earlier row.
    all_zero_rows : int
        Number of rows whose features are all 0.
    unlabelled_rows : int
        Number of rows without labels.
    missing_values : int
        Number of feature values that are NaN.
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

    def to_dict(self) -> dict[str, Any]:
        """Return a dict of plain Python objects for JSON; NaN becomes None."""
        plain: dict[str, Any] = to_plain(self)
        return plain

    def facts(self) -> list[tuple[str, str]]:
        """Return the summary as a list of (name, value) with formatted values."""
        return [
            ("rows", str(self.n_rows)),
            ("features", f"{self.n_features} ({self.feature_type})"),
            ("labels", str(self.n_labels)),
            ("cardinality", f"{self.cardinality:.3f}"),
            ("density", f"{self.density:.3f}"),
            (
                "distinct label sets",
                f"{self.n_label_sets} ({self.label_set_proportion:.3f} per row)",
            ),
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
        return "\n".join(
            [self.name, *(f"  {name:<{width}}  {value}" for name, value in self.facts())]
        )


def _counted(names: tuple[str, ...]) -> str:
    return f"{len(names)} ({listed(names)})" if names else "0"


def describe(dataset: Dataset) -> Description:
    """Summarise a data set.

    Parameters
    ----------
    dataset : Dataset
        The data.

    Returns
    -------
    Description
        The summary; ``print`` shows it as text.

    Examples
    --------
    >>> from imcc.datasets import describe, load_dataset
    >>> facts = describe(load_dataset("yeast"))
    >>> facts.n_label_sets, round(facts.cardinality, 3), round(facts.density, 3)
    (198, 4.237, 0.303)
    """
    if not isinstance(dataset, Dataset):
        raise TypeError(f"dataset must be a Dataset, got {type(dataset).__name__}")
    if dataset.n_rows == 0:
        raise ValueError(f"the data set {dataset.name!r} has no rows to describe")
    counts = dataset.Y.sum(axis=0)
    label_counts = dict(zip(dataset.label_names, counts.tolist(), strict=True))
    present = counts[counts > 0]
    ratios = present.max() / present if present.size else np.array([np.nan])
    values = dataset.X.data if dataset.is_sparse else dataset.X
    is_nominal = np.all((values == 0) | (values == 1) | np.isnan(values))
    zero_rows = (dataset.X != 0).sum(axis=1) == 0
    duplicates, conflicts = _duplicates(dataset)
    return Description(
        name=dataset.name,
        n_rows=dataset.n_rows,
        n_features=dataset.n_features,
        n_labels=dataset.n_labels,
        feature_type="nominal" if is_nominal else "numeric",
        cardinality=dataset.cardinality,
        density=dataset.density,
        n_label_sets=dataset.n_label_sets,
        label_set_proportion=dataset.n_label_sets / dataset.n_rows,
        label_counts=label_counts,
        labels_never_on=tuple(name for name, count in label_counts.items() if count == 0),
        labels_always_on=tuple(n for n, count in label_counts.items() if count == dataset.n_rows),
        mean_imbalance=float(ratios.mean()),
        max_imbalance=float(ratios.max()),
        duplicate_rows=duplicates,
        conflicting_rows=conflicts,
        all_zero_rows=int(np.count_nonzero(zero_rows)),
        unlabelled_rows=int(np.count_nonzero(dataset.Y.sum(axis=1) == 0)),
        missing_values=int(np.count_nonzero(np.isnan(values))),
    )


def _duplicates(dataset: Dataset) -> tuple[int, int]:
    """Return the number of duplicate rows, and of those with different labels."""
    first: dict[bytes, int] = {}
    duplicates = conflicts = 0
    X = dataset.X
    if dataset.is_sparse:
        spans = (slice(*ends) for ends in pairwise(X.indptr))
        keys = (X.indices[span].tobytes() + X.data[span].tobytes() for span in spans)
    else:
        keys = (row.tobytes() for row in X + 0.0)  # -0.0 becomes 0.0
    for row, key in enumerate(keys):
        earlier = first.setdefault(key, row)
        if earlier != row:
            duplicates += 1
            conflicts += int(not np.array_equal(dataset.Y[earlier], dataset.Y[row]))
    return duplicates, conflicts
