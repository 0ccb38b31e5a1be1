"""Sums of boosted trees, a row and a tree at a time."""

import numpy as np


def sums_by_rows(trees, X, n_outputs):
    """Return what each output gets, by walking from the root of each tree to a leaf."""
    out = np.zeros((len(X), n_outputs))
    for i, row in enumerate(X):
        for root, output in zip(trees.root, trees.output, strict=True):
            node = root
            while trees.left[node] != node:
                right = float(row[trees.used[trees.feature[node]]]) > trees.threshold[node]
                node = trees.left[node] + (1 if right else 0)
            out[i, output] += trees.value[node]
    return out
