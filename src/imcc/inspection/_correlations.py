r"""The label correlations that virtual examples represent.

Section 3.1 of the paper argues that the soft labels of a virtual example represent *local* label
correlations: labels that are both frequent in a cluster occur together there, and a label that is
rare where another one is frequent is evidence against it.  The represented part of the correlations
can be computed exactly.  With n_j the number of rows of cluster j, and s_ja the fraction of them
that have label a, the covariance of two labels over the rows is the sum of two parts::

    cov(a, b)  =  sum_j n_j/n (s_ja - p_a) (s_jb - p_b)   +   mean over rows of the covariance
                                                              within their cluster

The first part is a function of the virtual examples alone: they *carry* it.  The second part is
lost by averaging over the clusters.  Divided by the labels' standard deviations, the two parts add
up to the correlation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from imcc._utils.plain import to_plain
from imcc.inspection._tables import as_frame, as_text


@dataclass(frozen=True)
class LabelCorrelations:
    """Correlations of the labels, and the part of them that the virtual examples carry.

    Attributes
    ----------
    label_names : tuple of str
        Names of the labels.
    carried : ndarray of shape (n_labels, n_labels)
        The part between clusters.  The diagonal is the fraction of each label's variance that is
        between clusters.  NaN for labels that no row or every row has.
    total : ndarray of shape (n_labels, n_labels) or None
        Correlations of the training labels; None if the training labels are not known.
    by_chance : float
        Expected ``share`` of the same number of random clusters, (clusters - 1) / (rows - 1).
    """

    label_names: tuple[str, ...]
    carried: np.ndarray
    total: np.ndarray | None
    by_chance: float

    @property
    def share(self) -> float:
        """The least-squares slope of ``carried`` on ``total`` over all pairs of labels.

        1 if the correlations are carried completely; NaN if the training labels are not known or
        no pair is correlated.
        """
        if self.total is None:
            return float("nan")
        total, carried = self._pairs()
        weight = float(total @ total)
        return float(total @ carried) / weight if weight > 0 else float("nan")

    def _pairs(self) -> tuple[np.ndarray, np.ndarray]:
        assert self.total is not None
        upper = np.triu_indices(len(self.label_names), 1)
        total, carried = self.total[upper], self.carried[upper]
        known = ~np.isnan(total)
        return total[known], carried[known]

    def strongest(self, count: int) -> list[tuple[str, str, float, float]]:
        """Return the most correlated pairs of labels.

        Parameters
        ----------
        count : int
            Maximum number of pairs.

        Returns
        -------
        list of (str, str, float, float)
            The two names, the total correlation (NaN if not known) and the carried part.
        """
        rows, columns = np.triu_indices(len(self.label_names), 1)
        by = self.carried if self.total is None else self.total
        size = np.nan_to_num(np.abs(by[rows, columns]), nan=-1.0)
        order = np.argsort(-size, kind="stable")[:count]
        total = np.full_like(self.carried, np.nan) if self.total is None else self.total
        return [
            (
                self.label_names[rows[k]],
                self.label_names[columns[k]],
                float(total[rows[k], columns[k]]),
                float(self.carried[rows[k], columns[k]]),
            )
            for k in order
            if size[k] >= 0
        ]

    def __repr__(self) -> str:
        title = f"LabelCorrelations of {len(self.label_names):,} labels"
        if self.total is not None:
            title += f", of which the virtual examples carry {self.share:.0%}"
        count = len(self.label_names)
        pairs = [list(pair) for pair in self.strongest(count * (count - 1) // 2)]
        return as_text(f"{title}; strongest first:", ["", "", "total", "carried"], pairs)

    def to_frame(self) -> Any:
        """Return a data frame with one row per pair of labels, the most correlated first.

        Returns
        -------
        pandas.DataFrame
            With the columns ``first``, ``second``, ``total`` and ``carried``.
        """
        count = len(self.label_names)
        pairs = self.strongest(count * (count - 1) // 2)
        names = ("first", "second", "total", "carried")
        return as_frame({name: [pair[k] for pair in pairs] for k, name in enumerate(names)})

    def to_dict(self) -> dict[str, Any]:
        """Return a dict that can be written as JSON, with None for unknown values."""
        return to_plain(
            {
                "label_names": list(self.label_names),
                "carried": self.carried,
                "total": self.total,
                "share": self.share,
                "by_chance": self.by_chance,
            }
        )


def label_correlations(
    label_names: tuple[str, ...],
    soft_labels: np.ndarray,
    sizes: np.ndarray,
    n_clusterings: int,
    together: np.ndarray | None,
) -> LabelCorrelations:
    """Split the correlations of the labels into the parts between and within clusters.

    Parameters
    ----------
    label_names : tuple of str
    soft_labels : ndarray of shape (n_clusters, n_labels)
    sizes : ndarray of shape (n_clusters,)
    n_clusterings : int
        If there are several clusterings, the carried part is their mean.
    together : ndarray of shape (n_labels, n_labels) or None
        Number of training rows that have both labels.
    """
    weights = sizes / sizes.sum()
    n_rows = sizes.sum() / n_clusterings
    shares = (soft_labels + 1) / 2
    # From the counts, if known: they are exact for constant labels.
    p = weights @ shares if together is None else np.diag(together) / n_rows
    deviations = np.sqrt(np.maximum(p * (1 - p), 0.0))
    # The frequency of a constant label is 0 or 1 up to rounding.
    deviations[deviations < 1e-7] = np.nan
    units = np.outer(deviations, deviations)
    moved = shares - p
    carried = (moved.T * weights) @ moved / units
    total = None
    if together is not None:
        total = (together / n_rows - np.outer(p, p)) / units
    by_chance = (len(sizes) / n_clusterings - 1) / max(n_rows - 1, 1)
    return LabelCorrelations(label_names, carried, total, float(by_chance))
