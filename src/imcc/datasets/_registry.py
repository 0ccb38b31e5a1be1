"""Registry of the named data sets.

``registry.json`` contains, for each data set, its files (repository, commit, path, size and
SHA-256), their format, the shape and fingerprint of the loaded data, and the citation.
"""

from __future__ import annotations

import difflib
import functools
import json
from dataclasses import dataclass
from importlib import resources
from typing import Any

from imcc._utils.validation import check_choice

#: The groups of data sets of :func:`list_datasets`.
GROUPS = ("all", "paper", "regular", "large", "outside", "other")


@dataclass(frozen=True)
class RemoteFile:
    """A file with a public URL.

    Attributes
    ----------
    file : str
        Relative path in a mirror folder and in the cache, with ``/`` as separator.
    url : str
        Public URL.
    sha256 : str
        SHA-256 as 64 hexadecimal digits.
    size : int
        Size in bytes.
    """

    file: str
    url: str
    sha256: str
    size: int


@dataclass(frozen=True)
class DatasetInfo:
    """Information about a named data set.

    Attributes
    ----------
    name : str
        Name of the data set.
    group : {"regular", "large", "outside", "other"}
        "regular" and "large" are data sets of the paper of regular and large scale, "outside" are
        data sets that the paper does not use, and "other" are other versions of its data sets.
    n_rows, n_features, n_labels : int
        Numbers of rows, features and labels.
    feature_type : {"numeric", "nominal"}
        "nominal" if all features are 0 or 1.
    citation : str
        Publication to cite.
    files : tuple of RemoteFile
        The files.
    reader : str
        Format of the files.
    label_file : str or None
        The file with the label names, if there is one.
    fingerprint : str
        :meth:`Dataset.fingerprint` of the data.
    """

    name: str
    group: str
    n_rows: int
    n_features: int
    n_labels: int
    feature_type: str
    citation: str
    files: tuple[RemoteFile, ...]
    reader: str
    label_file: str | None
    fingerprint: str

    @property
    def size(self) -> int:
        """Total size of the files in bytes."""
        return sum(file.size for file in self.files)


@functools.cache
def _registry() -> dict[str, DatasetInfo]:
    facts = json.loads(resources.files(__package__).joinpath("registry.json").read_text("utf-8"))
    files = {
        file["file"]: RemoteFile(
            file["file"],
            _raw_address(facts["repositories"][file["repository"]], file["path"]),
            file["sha256"],
            file["bytes"],
        )
        for file in facts["files"]
    }
    return {
        entry["name"]: DatasetInfo(
            **{**entry, "files": tuple(files[name] for name in entry["files"])}
        )
        for entry in facts["datasets"]
    }


def _raw_address(repository: dict[str, Any], path: str) -> str:
    owner_and_name = repository["url"].removeprefix("https://github.com/")
    return f"https://raw.githubusercontent.com/{owner_and_name}/{repository['commit']}/{path}"


def list_datasets(group: str = "all") -> list[str]:
    """List the names of the data sets that :func:`load_dataset` can load.

    Parameters
    ----------
    group : {"all", "paper", "regular", "large", "outside", "other"}, default="all"
        "paper" means the fifteen data sets of the paper, "regular" those with fewer than 5000 rows
        and "large" the others; "outside" means data sets that the paper does not use, and "other"
        other versions of its data sets.

    Returns
    -------
    list of str
        The names.

    Examples
    --------
    >>> from imcc.datasets import list_datasets
    >>> list_datasets("regular")
    ['cal500', 'image', 'scene', 'yeast', 'enron', 'genbase', 'medical']
    >>> len(list_datasets("paper"))
    15
    """
    check_choice("group", group, GROUPS)
    wanted = {"all": ("regular", "large", "outside", "other"), "paper": ("regular", "large")}
    groups = wanted.get(group, (group,))
    return [info.name for info in _registry().values() if info.group in groups]


def dataset_info(name: str) -> DatasetInfo:
    """Return information about a named data set, without loading it.

    Parameters
    ----------
    name : str
        One of :func:`list_datasets`, in upper or lower case.

    Returns
    -------
    DatasetInfo

    Examples
    --------
    >>> from imcc.datasets import dataset_info
    >>> dataset_info("scene").n_labels
    6
    """
    if not isinstance(name, str):
        raise TypeError(f"name must be the name of a data set, got {name!r}")
    known = _registry()
    if name.lower() in known:
        return known[name.lower()]
    close = difflib.get_close_matches(name.lower(), known, n=3)
    hint = f"did you mean {' or '.join(close)}?" if close else f"the names are {', '.join(known)}"
    raise ValueError(f"there is no data set named {name!r}; {hint}")
