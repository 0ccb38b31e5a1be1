"""The data sets that are known by name.

The facts are in ``registry.json``: for each data set its files (repository, commit, path there,
size and SHA-256), what reads them, the sizes and the fingerprint that the loaded arrays must
have, and whom to cite.
"""

from __future__ import annotations

import difflib
import functools
import json
from dataclasses import dataclass
from importlib import resources
from typing import Any

from imcc._utils.validation import check_choice

#: Groups of data sets that :func:`list_datasets` takes.
GROUPS = ("all", "paper", "regular", "large", "outside", "other")


@dataclass(frozen=True)
class RemoteFile:
    """A file with a public address.

    Attributes
    ----------
    file : str
        Its place in a mirror folder and in the cache, with ``/`` between the parts.
    url : str
        Its public address.
    sha256 : str
        What it must be, as 64 hexadecimal digits.
    size : int
        Its length in bytes.
    """

    file: str
    url: str
    sha256: str
    size: int


@dataclass(frozen=True)
class DatasetInfo:
    """What is known of a named data set without loading it.

    Attributes
    ----------
    name : str
        Its name.
    group : {"regular", "large", "outside", "other"}
        Where the paper has it: among its data sets of regular or large scale, or not at all.  Those
        of the group "outside" are other data; those of "other" are copies of the paper's.
    n_rows, n_features, n_labels : int
        Its sizes.
    feature_type : {"numeric", "nominal"}
        Whether the features are numbers or only 0 and 1.
    citation : str
        Where it was published.
    files : tuple of RemoteFile
        Its files.
    reader : str
        The format of the files.
    label_file : str or None
        Which of the files is the XML file that names the labels.
    fingerprint : str
        What :meth:`Dataset.fingerprint` must give.
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
        """The files' lengths together, in bytes."""
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
    """Return the names that :func:`load_dataset` takes.

    Parameters
    ----------
    group : {"all", "paper", "regular", "large", "outside", "other"}
        All of them; the paper's fifteen; its data sets of regular scale (fewer than 5000 rows) or
        of large scale; five that it does not use; or other copies of its data.

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
    """Return what is known of a named data set without loading it.

    Parameters
    ----------
    name : str
        One of :func:`list_datasets`, in small or capital letters.

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
    hint = f"did you mean {' or '.join(close)}?" if close else f"known are {', '.join(known)}"
    raise ValueError(f"there is no data set named {name!r}; {hint}")
