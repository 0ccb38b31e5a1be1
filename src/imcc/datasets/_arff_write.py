"""Writing ARFF files for MULAN and MEKA."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from imcc._utils.files import save
from imcc.datasets._arff_syntax import quote
from imcc.datasets._dataset import Dataset
from imcc.datasets._files import inner_name
from imcc.datasets._label_xml import format_label_xml
from imcc.datasets._mulan import MEKA_OPTION
from imcc.datasets._text import check_names, number_texts


def write_mulan(dataset: Dataset, path: str | os.PathLike[str]) -> tuple[Path, Path]:
    """Write an ARFF file, sparse if X is, and the XML file with the label names next to it.

    Parameters
    ----------
    dataset : Dataset
        The data to write.
    path : str or path-like
        The ARFF file; compressed if the suffix is ``.gz``, ``.bz2`` or ``.zip``.

    Returns
    -------
    arff, xml : Path
        The two files.

    See Also
    --------
    read_mulan : Reads the files.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from imcc.datasets import Dataset
    >>> folder = tempfile.TemporaryDirectory()
    >>> arff, xml = write_mulan(Dataset([[0.5]], [[1]]), pathlib.Path(folder.name, "one.arff"))
    >>> print(arff.read_text())
    @relation unnamed
    <BLANKLINE>
    @attribute x0 numeric
    @attribute label0 {0,1}
    <BLANKLINE>
    @data
    0.5,1
    <BLANKLINE>
    >>> folder.cleanup()
    """
    arff = Path(path)
    xml = xml_path(arff)
    labels = format_label_xml(dataset.label_names)  # may raise, so before anything is written
    save(arff, _arff_text(dataset, quote(dataset.name), labels_first=False).encode("utf-8"))
    save(xml, labels.encode("utf-8"))
    return arff, xml


def write_meka(dataset: Dataset, path: str | os.PathLike[str]) -> Path:
    """Write an ARFF file with the labels first and their number in the name of the relation.

    Parameters
    ----------
    dataset : Dataset
        The data to write.
    path : str or path-like
        The file; compressed if the suffix is ``.gz``, ``.bz2`` or ``.zip``.

    Returns
    -------
    Path
        The file.

    See Also
    --------
    read_meka : Reads the file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from imcc.datasets import Dataset
    >>> folder = tempfile.TemporaryDirectory()
    >>> arff = write_meka(Dataset([[0.5]], [[1]]), pathlib.Path(folder.name, "one.arff"))
    >>> print(arff.read_text().splitlines()[0])
    @relation 'unnamed: -C 1'
    >>> folder.cleanup()
    """
    # A name that contains "-C 9" would be read as the number of labels.
    plain = MEKA_OPTION.sub(" ", dataset.name)
    relation = quote(f"{plain}: -C {dataset.n_labels}")
    return save(path, _arff_text(dataset, relation, labels_first=True).encode("utf-8"))


def xml_path(arff: str | os.PathLike[str]) -> Path:
    """Return the path of the label file of an ARFF file."""
    return Path(arff).with_name(inner_name(arff)).with_suffix(".xml")


def _arff_text(dataset: Dataset, relation: str, labels_first: bool) -> str:
    check_names(dataset, "ARFF")
    features = [f"@attribute {quote(name)} numeric" for name in dataset.feature_names]
    labels = [f"@attribute {quote(name)} {{0,1}}" for name in dataset.label_names]
    attributes = labels + features if labels_first else features + labels
    rows = _sparse_rows if dataset.is_sparse else _dense_rows
    return "\n".join(
        [f"@relation {relation}", "", *attributes, "", "@data", *rows(dataset, labels_first), ""]
    )


def _dense_rows(dataset: Dataset, labels_first: bool) -> Iterator[str]:
    for x, y in zip(dataset.X, dataset.Y, strict=True):
        features = number_texts(x, missing="?")
        labels = ["1" if on else "0" for on in y.tolist()]
        yield ",".join(labels + features if labels_first else features + labels)


def _sparse_rows(dataset: Dataset, labels_first: bool) -> Iterator[str]:
    both = [sp.csr_array(dataset.Y, dtype=np.float64), dataset.X]
    matrix = sp.hstack(both if labels_first else both[::-1], format="csr")
    matrix.sort_indices()
    for start, stop in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
        indices = matrix.indices[start:stop].tolist()
        values = number_texts(matrix.data[start:stop], missing="?")
        yield "{" + ",".join(f"{i} {v}" for i, v in zip(indices, values, strict=True)) + "}"
