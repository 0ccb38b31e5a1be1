"""Blocks of features, and the factors that balance them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.compose import ColumnTransformer

from imcc._utils.errors import InvalidArgumentError
from imcc.tables._schema import Schema
from imcc.tables._transformer import BLOCK_ROWS

# Entries that are summed and scaled at a time.
_BLOCK_ENTRIES = 2**20
_FEW_ENTRIES = 2**16
#: The shares of the features' variance that a kind's columns have by default.
WEIGHTS = {"numbers": 1.0, "categories": 1.0, "text": 4.0}


def check_weights(weights: Mapping[str, float] | None) -> dict[str, float]:
    """Return the weights of all blocks; check those that are given."""
    merged = {**WEIGHTS, **(weights or {})}
    if set(merged) != set(WEIGHTS) or not all(
        isinstance(w, (int, float)) and np.isfinite(w) and w > 0 for w in merged.values()
    ):
        raise InvalidArgumentError(
            "weights", f"must give numbers above 0 to some of {sorted(WEIGHTS)}, got {weights!r}"
        )
    return merged


def blocks_of(schema: Schema) -> dict[str, list[str]]:
    """Return the blocks of features and their columns of the table."""
    blocks = {
        "numbers": schema.of_kind("number", "date", "yes/no"),
        "categories": schema.of_kind("category"),
    }
    blocks |= {f"text {j}": [name] for j, name in enumerate(schema.of_kind("text"))}
    return {name: columns for name, columns in blocks.items() if columns}


# Which block the steps of the transformer belong to, for those that are not called like it.
_BLOCK = {"missing": "numbers", "flags": "numbers"}


def block_scales(
    encoder: ColumnTransformer, features: Any, schema: Schema, weights: Mapping[str, float]
) -> dict[str, float]:
    """Return the factor on each step's features that gives its block the variance it should have.

    The variance of a block is the sum of the variances of its features, that is, half of the mean
    squared distance of two rows.
    """
    variances = _variances(features)
    blocks = blocks_of(schema)
    totals = dict.fromkeys(blocks, 0.0)
    for step, where in encoder.output_indices_.items():
        if step != "remainder":
            totals[_BLOCK.get(step, step)] += float(variances[where].sum())
    scales = {}
    for step in encoder.output_indices_:
        if step == "remainder":
            continue
        block = _BLOCK.get(step, step)
        kind = "text" if block.startswith("text ") else block
        wanted = weights[kind] * len(blocks[block])
        scales[step] = float(np.sqrt(wanted / totals[block])) if totals[block] > 0 else 1.0
    return scales


def _variances(features: Any) -> np.ndarray:
    """Return the variance of every feature, without another array of all entries."""
    n_rows, n_columns = features.shape
    sums, squares = np.zeros(n_columns), np.zeros(n_columns)
    if sp.issparse(features):
        for start in range(0, features.nnz, _BLOCK_ENTRIES):
            some, more = np.zeros(n_columns), np.zeros(n_columns)
            for first in range(start, min(start + _BLOCK_ENTRIES, features.nnz), _FEW_ENTRIES):
                part = slice(first, min(first + _FEW_ENTRIES, start + _BLOCK_ENTRIES))
                where, values = features.indices[part], features.data[part]
                np.add.at(some, where, values)
                np.add.at(more, where, values**2)
            sums += some
            squares += more
    else:
        for start in range(0, n_rows, BLOCK_ROWS):
            block = features[start : start + BLOCK_ROWS]
            sums += block.sum(axis=0)
            squares += (block**2).sum(axis=0)
    return squares / n_rows - (sums / n_rows) ** 2


def scaled(features: Any, encoder: ColumnTransformer, scales: Mapping[str, float]) -> Any:
    """Multiply the steps' features by their factors, in place."""
    factors = np.ones(features.shape[1])
    for step, factor in scales.items():
        factors[encoder.output_indices_[step]] = factor
    if sp.issparse(features):
        for start in range(0, features.nnz, _FEW_ENTRIES):
            part = slice(start, start + _FEW_ENTRIES)
            features.data[part] *= factors[features.indices[part]]
    else:
        features *= factors
    return features
