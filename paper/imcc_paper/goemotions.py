"""The whole training part of GoEmotions as a data set, for the rivals' large sets.

    python -m imcc_paper.goemotions goemotions-train.tsv dev.tsv emotions.txt goemotions_whole.npz

The comments of both files, counted as those of the data set "goemotions" are (its second and third
file; see :mod:`imcc.datasets`): words and bigrams that occur in at least two comments, without
weights.  The first file has a header line and numbers of labels separated by commas, too.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from imcc.datasets import Dataset, write


def read_comments(path: Path, has_header: bool) -> list[tuple[str, list[int]]]:
    """Return the texts of a file with the numbers of their labels."""
    with path.open(encoding="utf-8", newline="") as file:
        lines = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        if has_header:
            next(lines)
        return [(text, [int(label) for label in labels.split(",")]) for text, labels, _ in lines]


def main() -> None:
    """Read the command line and write the data set."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("train", "dev", "labels", "out"):
        parser.add_argument(name, type=Path)
    files = parser.parse_args()
    comments = read_comments(files.train, True) + read_comments(files.dev, False)
    names = files.labels.read_text("utf-8").split()
    counter = CountVectorizer(ngram_range=(1, 2), min_df=2, dtype=np.float64)
    X = counter.fit_transform([text for text, _ in comments]).tocsr()
    Y = np.zeros((len(comments), len(names)), dtype=np.int8)
    for row, (_, labels) in enumerate(comments):
        Y[row, labels] = 1
    features = tuple(str(name) for name in counter.get_feature_names_out())
    write(Dataset(X, Y, features, tuple(names), files.out.stem, str(files.train)), files.out)
    print(f"{len(comments)} comments, {X.shape[1]} features, {Y.shape[1]} labels")


if __name__ == "__main__":
    main()
