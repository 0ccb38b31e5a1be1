"""Writers of ARFF and svmlight files, which imcc reads only."""

import bz2
import gzip
import re
from itertools import pairwise
from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np
import scipy.sparse as sp

from imcc import datasets

ESCAPED = str.maketrans({"\\": r"\\", "'": r"\'", "\n": r"\n", "\r": r"\r", "\t": r"\t"})


def write(dataset, path, *, format=None, **options):  # noqa: A002
    """Write a data set as imcc does, or as ARFF (of MULAN or MEKA) or svmlight."""
    path = Path(path)
    name = path.name.removesuffix(".gz").removesuffix(".bz2")
    if name.endswith(".svm"):
        text = svmlight(dataset)
    elif name.endswith(".arff"):
        text = arff(dataset, is_meka=format == "meka")
        if format != "meka":
            labels = "".join(f"<label name={quoteattr(n)}/>" for n in dataset.label_names)
            path.with_name(name).with_suffix(".xml").write_text(
                f"<labels>{labels}</labels>", "utf-8"
            )
    else:
        return datasets.write(dataset, path, **options)
    pack = {".gz": gzip.compress, ".bz2": bz2.compress}.get(path.suffix, bytes)
    path.write_bytes(pack(text.encode("utf-8")))
    return path


def arff(dataset, is_meka=False):
    features = [f"@attribute {quoted(name)} numeric" for name in dataset.feature_names]
    labels = [f"@attribute {quoted(name)} {{0,1}}" for name in dataset.label_names]
    relation = f"{dataset.name}: -C {dataset.n_labels}" if is_meka else dataset.name
    both = [labels, features] if is_meka else [features, labels]
    Y = sp.csr_array(dataset.Y, dtype=np.float64)
    X = dataset.X if dataset.is_sparse else sp.csr_array(dataset.X)
    lines = [f"@relation {quoted(relation)}", *both[0], *both[1], "@data"]
    if dataset.is_sparse:
        matrix = sp.hstack([Y, X] if is_meka else [X, Y], format="csr")
        for start, stop in pairwise(matrix.indptr):
            values = number_texts(matrix.data[start:stop], missing="?")
            entries = zip(matrix.indices[start:stop], values, strict=True)
            lines.append("{" + ",".join(f"{i} {v}" for i, v in entries) + "}")
    else:
        for x, y in zip(dataset.X, dataset.Y.tolist(), strict=True):
            x, y = number_texts(x, missing="?"), list(map(str, y))
            lines.append(",".join([*y, *x] if is_meka else [*x, *y]))
    return "\n".join([*lines, ""])


def number_texts(values, missing):
    return [
        missing if value != value else repr(value).removesuffix(".0") for value in values.tolist()
    ]


def quoted(name):
    return name if re.fullmatch(r"[A-Za-z0-9_.]+", name) else f"'{name.translate(ESCAPED)}'"


def svmlight(dataset):
    """With the sizes in the first line: features and labels are counted from 0."""
    X = sp.csr_array(dataset.X)
    lines = [f"{dataset.n_rows} {dataset.n_features} {dataset.n_labels}"]
    for row, (start, stop) in enumerate(pairwise(X.indptr)):
        labels = ",".join(map(str, np.flatnonzero(dataset.Y[row])))
        entries = zip(X.indices[start:stop], X.data[start:stop].tolist(), strict=True)
        lines.append(" ".join([labels, *([f"{i}:{v!r}" for i, v in entries] or ["0:0"])]))
    return "\n".join([*lines, ""])
