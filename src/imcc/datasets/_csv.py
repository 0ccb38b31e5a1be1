"""Writing CSV and TSV files; :mod:`imcc.tables` reads them."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path

import numpy as np

from imcc._utils.errors import InvalidArgumentError
from imcc._utils.files import save
from imcc._utils.progress import report_progress
from imcc.datasets._dataset import Dataset
from imcc.datasets._errors import listed, repeated
from imcc.datasets._files import inner_name


def write_csv(dataset: Dataset, path: str | os.PathLike[str]) -> Path:
    """Write a CSV or TSV file with the features followed by the labels.

    Parameters
    ----------
    dataset : Dataset
        The data to write.
    path : str or path-like
        The file, with tabs if its suffix is ``.tsv`` and commas otherwise; compressed if the suffix
        is ``.gz``, ``.bz2`` or ``.zip``.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from imcc.datasets import Dataset
    >>> folder = tempfile.TemporaryDirectory()
    >>> table = write_csv(Dataset([[0.5]], [[1]]), pathlib.Path(folder.name, "one.csv"))
    >>> print(table.read_text().strip())
    x0,label0
    0.5,1
    >>> folder.cleanup()
    """
    names = [*dataset.feature_names, *dataset.label_names]
    if twice := repeated(names):
        raise InvalidArgumentError(
            "dataset",
            f"has columns of the same name, which CSV cannot have: {listed(twice)}; write .npz",
        )
    if np.isinf(dataset.X.data if dataset.is_sparse else dataset.X).any():
        raise InvalidArgumentError("dataset", "has infinite values, which CSV cannot have")
    delimiter = "\t" if inner_name(path).lower().endswith(".tsv") else ","
    # The csv module does not quote carriage returns unless it quotes everything.
    quoted = any("\r" in name for name in names)
    buffer = io.StringIO(newline="")
    writer = csv.writer(
        buffer,
        delimiter=delimiter,
        lineterminator="\n",
        quoting=csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL,
    )
    writer.writerow(names)
    for row in range(dataset.n_rows):
        features = dataset.X[[row]].toarray()[0] if dataset.is_sparse else dataset.X[row]
        numbers = [repr(x).removesuffix(".0") if x else repr(x) for x in features.tolist()]
        writer.writerow([*numbers, *dataset.Y[row].tolist()])
        report_progress(row + 1, dataset.n_rows)
    return save(path, buffer.getvalue().encode("utf-8"))
