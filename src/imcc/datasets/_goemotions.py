"""GoEmotions: short comments labelled with emotions, as counts of words and bigrams."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from imcc.datasets._dataset import LABEL_DTYPE, Dataset


def read_goemotions(paths: Sequence[Path]) -> Dataset:
    """Read comments (tab-separated text, label numbers and id) and the names of the labels.

    Parameters
    ----------
    paths : sequence of two paths
        The file of comments, and the file of label names, one per line.

    Returns
    -------
    Dataset
        The features are the counts of words and bigrams that occur in at least two comments.  They
        are not weighted: TF-IDF weights should be fitted to training rows, as part of a model.
    """
    comments, names_file = paths
    label_names = names_file.read_text("utf-8").split()
    texts, rows = [], []
    for line in comments.read_text("utf-8").splitlines():
        text, numbers, _ = line.split("\t")
        texts.append(text)
        rows.append([int(number) for number in numbers.split(",")])
    counter = CountVectorizer(ngram_range=(1, 2), min_df=2, dtype=np.float64)
    X = counter.fit_transform(texts).tocsr()
    Y = np.zeros((len(rows), len(label_names)), dtype=LABEL_DTYPE)
    for i, labels in enumerate(rows):
        Y[i, labels] = 1
    names = tuple(str(name) for name in counter.get_feature_names_out())
    return Dataset(X, Y, names, tuple(label_names), "goemotions", str(comments))
