"""GoEmotions: short comments with the emotions in them, as counts of words and pairs of words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from imcc.datasets._dataset import LABEL_DTYPE, Dataset
from imcc.datasets._errors import DataFormatError


def read_goemotions(paths: Sequence[Path]) -> Dataset:
    """Read comments (text, label numbers, id; tabs between them) and the names of the labels.

    Parameters
    ----------
    paths : sequence of two paths
        The comments, and the names of the labels, one per line.

    Returns
    -------
    Dataset
        The features are how often each word and each pair of neighbouring words occurs, for those
        that at least two comments have.  They are raw counts: weighting them (TF-IDF) is a part of
        a model, which learns it on training rows.
    """
    comments, names_file = paths
    label_names = names_file.read_text("utf-8").split()
    texts, rows = [], []
    for number, line in enumerate(comments.read_text("utf-8").splitlines(), start=1):
        fields = line.split("\t")
        if len(fields) != 3:
            raise DataFormatError(f"the line has {len(fields)} fields, not 3", comments, number)
        labels = [int(part) for part in fields[1].split(",") if part.isdecimal()]
        if not labels or max(labels) >= len(label_names):
            raise DataFormatError(f"{fields[1]!r} are no numbers of labels", comments, number)
        texts.append(fields[0])
        rows.append(labels)
    counter = CountVectorizer(ngram_range=(1, 2), min_df=2, dtype=np.float64)
    X = counter.fit_transform(texts).tocsr()
    Y = np.zeros((len(rows), len(label_names)), dtype=LABEL_DTYPE)
    for i, labels in enumerate(rows):
        Y[i, labels] = 1
    names = tuple(str(name) for name in counter.get_feature_names_out())
    return Dataset(X, Y, names, tuple(label_names), "goemotions", str(comments))
