"""Loading data sets by name."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from imcc.datasets._dataset import Dataset
from imcc.datasets._errors import DataFetchError
from imcc.datasets._fetch import get_file, local_file
from imcc.datasets._files import open_content
from imcc.datasets._formats import read
from imcc.datasets._goemotions import read_goemotions
from imcc.datasets._registry import DatasetInfo, dataset_info, list_datasets

#: The default data set, which is included in the package river and needs no network.
DEFAULT = "yeast"

# Order of the labels in MULAN's yeast.xml; the copy in river has the columns of yeast.arff.
_YEAST_LABELS = tuple(f"Class{i}" for i in (1, 2, 3, 6, 4, 10, 11, 5, 7, 8, 9, 12, 13, 14))


def load_dataset(name: str = DEFAULT) -> Dataset:
    """Load a data set by name, with the same rows in the same order on every machine.

    Parameters
    ----------
    name : str, default="yeast"
        One of :func:`list_datasets`.  ``"yeast"`` needs no network: if it is neither in a mirror
        nor in the cache, the copy in the package ``river`` is used.

    Returns
    -------
    Dataset
        The data; training and test parts are concatenated.

    Raises
    ------
    DataFetchError
        If a file cannot be found or downloaded, or the data are not those of the registry.

    See Also
    --------
    list_datasets : The names of the data sets.
    fetch_datasets : Downloads files in advance.

    Notes
    -----
    Files are searched in the folder ``IMCC_DATA_MIRROR``, in the cache (``IMCC_DATA_HOME``), at the
    URL ``IMCC_DATA_MIRROR`` and at their public URLs, in this order.

    Examples
    --------
    >>> from imcc.datasets import load_dataset
    >>> load_dataset("yeast")
    Dataset 'yeast': 2417 rows, 103 features (dense), 14 labels, 4.237 labels per row
    """
    info = dataset_info(name)
    dataset = _read(info, _get_files(info))
    if dataset.fingerprint() != info.fingerprint:
        raise DataFetchError(
            f"{dataset.source} does not contain the data of {info.name!r}: rows, columns or their "
            "order differ from the published data"
        )
    return dataset.renamed(info.name)


def fetch_datasets(names: str | Iterable[str] | None = None) -> dict[str, list[Path]]:
    """Download the files of data sets, so that :func:`load_dataset` needs no network later.

    Parameters
    ----------
    names : str or iterable of str, default=None
        Names of data sets.  None means the fifteen data sets of the paper.

    Returns
    -------
    dict of str to list of Path
        The local files of each data set.

    Raises
    ------
    DataFetchError
        If a file cannot be obtained.

    Examples
    --------
    >>> from imcc.datasets import fetch_datasets
    >>> sorted(fetch_datasets("yeast"))
    ['yeast']
    """
    if isinstance(names, str):
        names = [names]
    # All names are looked up before anything is downloaded.
    infos = [dataset_info(name) for name in (list_datasets("paper") if names is None else names)]
    return {info.name: _get_files(info) for info in infos}


def is_available(name: str) -> bool:
    """Return whether a named data set can be loaded without the network."""
    return _local_files(dataset_info(name)) is not None


def _local_files(info: DatasetInfo) -> list[Path] | None:
    """Return the files of a data set, or the copy in river, if they are on this machine."""
    files = [file for file in map(local_file, info.files) if file is not None]
    if len(files) == len(info.files):
        return files
    river = _river_copy(info)
    return None if river is None else [river]


def _get_files(info: DatasetInfo) -> list[Path]:
    local = _local_files(info)
    if local is not None:
        return local
    try:
        return [get_file(file) for file in info.files]
    except (DataFetchError, ImportError) as error:
        if info.name != DEFAULT:
            raise
        raise DataFetchError(
            f"{error}\nOr install the package river, which includes a copy of {DEFAULT!r}: "
            "pip install river"
        ) from error


def _river_copy(info: DatasetInfo) -> Path | None:
    """Return the copy of the yeast data in river, if it is requested and river is installed."""
    if info.name != DEFAULT:
        return None
    found = importlib.util.find_spec("river")  # not imported, which would take a second
    for folder in (found.submodule_search_locations or ()) if found else ():
        copy = Path(folder) / "datasets" / "yeast.csv.gz"
        if copy.is_file():
            return copy
    return None


def _read(info: DatasetInfo, paths: list[Path]) -> Dataset:
    if info.reader == "goemotions":
        return read_goemotions(paths)
    if paths == [_river_copy(info)]:
        return _read_river(paths[0])
    by_name = dict(zip((file.file for file in info.files), paths, strict=True))
    labels = by_name.pop(info.label_file or "", None)
    options: dict[str, Any] = {} if labels is None else {"labels": labels}
    return read(list(by_name.values()), format=info.reader, **options)


def _read_river(path: Path) -> Dataset:
    """Read the copy in river: names, then rows of numbers.  NumPy needs no further package."""
    lines = open_content(path).data.decode("ascii").splitlines()
    names = lines[0].split(",")
    values = np.loadtxt(lines[1:], delimiter=",")
    labels = [names.index(label) for label in _YEAST_LABELS]
    features = [i for i in range(len(names)) if i not in labels]
    return Dataset(
        values[:, features],
        values[:, labels],
        tuple(names[i] for i in features),
        _YEAST_LABELS,
        source=str(path),
    )
