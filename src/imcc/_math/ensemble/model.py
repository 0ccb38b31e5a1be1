"""The fitted ensemble: its records, and the scores of rows."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from imcc._array.array import Array, asarray, is_numpy, moved_record, namespace, to_numpy, zeros
from imcc._array.device import block_entries
from imcc._math.ensemble.members import make_kernel
from imcc._math.ensemble.trees import BLOCK_ROWS, Trees
from imcc._math.ensemble.views import Space
from imcc._math.kernels import row_blocks, squared_distances, squared_lengths
from imcc._math.logistic import LogisticMaps
from imcc._utils.progress import report_progress
from imcc._utils.validation import Features

# Kernel values held at a time when rows are scored, 8 MiB.
_SCORE_ENTRIES = 2**20


@dataclass(frozen=True)
class Member:
    """A fitted member, whose log-odds are ``slope * (f(x) + intercept) + offset``.

    Attributes
    ----------
    setting : dict
        What was selected: ``view``, ``kernel`` ("linear" for a linear model), ``width_scale``,
        ``penalty`` and ``coupling``.
    weight : float
        Its share of the ensemble; the shares of all members sum to one.
    width : float
        The kernel's width; 0 for a linear model.
    coef : array of shape (n_anchors, q), or (n_features, q) for a linear model
        In float32 if that is exact enough.
    intercept, slope, offset : array of shape (q,)
    """

    setting: dict[str, Any]
    weight: float
    width: float
    coef: Array
    intercept: Array
    slope: Array
    offset: Array

    @property
    def key(self) -> tuple[str, str]:
        """View and kernel, which determine the space of the member."""
        return self.setting["view"], self.setting["kernel"]


@dataclass(frozen=True)
class TreeMember:
    """Trees whose log-odds are averaged with those of other members, for labels that have trees.

    Attributes
    ----------
    trees : Trees
        Of the columns.  Their values are multiplied by share and calibration.
    kept : ndarray of shape (q,)
        What the other log-odds are multiplied by: one minus the share, or 1 without trees.
    added : ndarray of shape (q,)
        Added to all rows.
    share : float
        Of the trees in the weighted mean.
    """

    trees: Trees
    kept: np.ndarray
    added: np.ndarray
    share: float

    @classmethod
    def averaged(
        cls,
        trees: Trees,
        start: np.ndarray,
        which: np.ndarray,
        maps: LogisticMaps,
        share: float,
        n_labels: int,
    ) -> TreeMember:
        """Return the member for trees of some labels, whose sums begin at start."""
        kept, added = np.ones(n_labels), np.zeros(n_labels)
        factor = share * maps.slope
        kept[which] -= share
        added[which] = factor * start + share * maps.offset
        value = trees.value * factor[trees.output]
        output = which[trees.output].astype(np.int32)
        return cls(replace(trees, value=value, output=output), kept, added, share)

    def blended(self, rows: Features, log_odds: np.ndarray) -> np.ndarray:
        """Return log-odds of rows, averaged with those of the trees."""
        out, used = log_odds * self.kept + self.added, self.trees.used
        for start in range(0, len(out), BLOCK_ROWS):
            block = slice(start, start + BLOCK_ROWS)
            own = rows[block] if len(out) > BLOCK_ROWS else rows
            # To index the columns of few sparse rows takes longer than to make them dense.
            few = sp.issparse(own) and own.shape[0] * own.shape[1] <= _SCORE_ENTRIES
            own = own.toarray()[:, used] if few else own[:, used]
            own = own.toarray() if sp.issparse(own) else own
            out[block] += self.trees.sums(own, log_odds.shape[1])
        return out


@dataclass(frozen=True)
class EnsembleModel:
    """The mean log-odds of some members, averaged with those of trees.

    Attributes
    ----------
    center : ndarray of shape (n_features,) or None
        Subtracted from rows before anything else; None for sparse rows.
    anchors : ndarray or CSR matrix of shape (n_anchors, n_features)
        The training rows, or landmarks, less the center, in float32.
    spaces : tuple of Space
        Of the members, in the order of their keys.
    members : tuple of Member
    varying : ndarray of int, shape (q,)
        The outputs that members score; all others have the same label in every training row.
    base : array of shape (n_outputs,)
        The log-odds of the smoothed base rates, which are the scores of the other outputs.
    trees : TreeMember or None
        For rows less the center.
    """

    center: np.ndarray | None
    anchors: Features
    spaces: tuple[Space, ...]
    members: tuple[Member, ...]
    varying: np.ndarray
    base: Array
    trees: TreeMember | None

    @property
    def keys(self) -> list[tuple[str, str]]:
        """Views and kernels of the members, each once."""
        return list(dict.fromkeys(member.key for member in self.members))

    def moved(self, like: Array) -> EnsembleModel:
        """Return the model with its arrays in the library and on the device of another array."""
        return replace(
            self,
            members=tuple(moved_record(member, like) for member in self.members),
            base=asarray(self.base, like),
        )

    def log_odds(self, X: Features) -> Array:
        """Return the log-odds of host rows, (n_samples, n_outputs), on the model's device."""
        xp, rows = namespace(self.base), centered(X, self.center)
        out = zeros((rows.shape[0], self.base.shape[0]), self.base) + self.base
        if not self.members:
            return out
        found = self._of_members(rows)
        if self.trees is not None:
            found = asarray(self.trees.blended(rows, to_numpy(found)), found)
        if len(self.varying) == out.shape[1]:
            return found
        columns = [out[:, j] for j in range(out.shape[1])]
        for i, j in enumerate(self.varying.tolist()):
            columns[j] = found[:, i]
        return xp.stack(columns, axis=1)

    def _of_members(self, rows: Features) -> Array:
        """Return the mean log-odds of the members, (n_samples, q), for rows less the center."""
        n = rows.shape[0]
        found = zeros((n, len(self.varying)), self.base)
        for member in self.members:
            found = found + member.weight * (member.slope * member.intercept + member.offset)
        entries = block_entries(self.base) or _SCORE_ENTRIES
        for block in row_blocks(n, max(1, self.anchors.shape[0]), entries):
            seen: dict[str, Features] = {}
            own = rows if block == slice(0, n) else rows[block]
            for number, space in enumerate(self.spaces):
                name = space.view.name
                if name not in seen:
                    seen[name] = space.view.transform(own)
                found[block, :] += self._of_space(number, space.coordinates(seen[name]))
            report_progress(block.stop, n)
        return found

    def _of_space(self, number: int, rows: Features) -> Array:
        """Sum over the members of a space, for rows there, without intercepts."""
        kernel = self.keys[number][1]
        anchors, squares, merged = self._placed_anchors[number]
        if kernel == "linear":
            return asarray(rows @ to_numpy(merged[0.0]), self.base)
        base = squared_distances(self._placed(rows), anchors, squares, self.base)
        total: Any = 0.0
        for left, (width, coef) in zip(range(len(merged))[::-1], merged.items(), strict=True):
            # The last width may overwrite the distances.
            own = namespace(base).asarray(base, copy=True) if left else base
            total = total + make_kernel(kernel).finish(own, width) @ coef
        return total

    @cached_property
    def _placed_anchors(self) -> list[tuple[Any, Any, dict[float, Any]]]:
        """The anchors in each space, their squared lengths, and coefficients by width.

        In float64, where the model is; the coefficients of members of the same width are added.
        """
        found: list[tuple[Any, Any, dict[float, Any]]] = []
        for key, space in zip(self.keys, self.spaces, strict=True):
            merged: dict[float, Any] = {}
            for member in self.members:
                if member.key == key:
                    own = member.coef * (member.weight * member.slope)
                    merged[member.width] = merged.get(member.width, 0.0) + own
            if key[1] == "linear":
                found.append((None, None, merged))
                continue
            rows = self._placed(space.transform(self.anchors))
            squares = squared_lengths(rows)
            # Products need the transpose in CSR, which that of CSC is.
            kept = rows.tocsc() if sp.issparse(rows) and is_numpy(self.base) else rows
            found.append((kept, squares, merged))
        return found

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields; what follows from them is computed again when it is needed."""
        return {own.name: getattr(self, own.name) for own in fields(self)}

    def _placed(self, rows: Features) -> Features:
        """Return host rows in float64 where the model is; sparse rows stay on the host."""
        rows = rows.astype(np.float64)
        return rows if sp.issparse(rows) else asarray(rows, self.base)


def centered(X: Features, center: np.ndarray | None) -> Features:
    """Return rows less the center in float32, the precision that anchors are kept in.

    Rows without a center are mostly zero, and sparse.
    """
    if center is None:
        return sp.csr_matrix(X, dtype=np.float32)
    dense = X.toarray() if sp.issparse(X) else X
    return (np.asarray(dense, dtype=np.float64) - center).astype(np.float32)
