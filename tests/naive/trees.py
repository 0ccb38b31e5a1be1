"""Sums of boosted trees, a row and a tree at a time."""

import numpy as np


def sums_by_rows(trees, X, n_outputs):
    """Return what each output gets, by walking from the root of each tree to a leaf."""
    out = np.zeros((len(X), n_outputs))
    for i, row in enumerate(X):
        for root, output in zip(trees.root, trees.output, strict=True):
            node = root
            while trees.left[node] != node:
                right = float(row[trees.feature[node]]) > trees.threshold[node]
                node = trees.right[node] if right else trees.left[node]
            out[i, output] += trees.value[node]
    return out
