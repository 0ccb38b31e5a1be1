"""Errors of model files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from imcc._utils.errors import ImccError, given


class ModelFileError(ImccError):
    """A file is no model, is damaged, or was written by a version that this one cannot read.

    Parameters
    ----------
    reason : str
        What is wrong, and what to do about it.
    path : str or Path, optional
        The file.
    """

    def __init__(self, reason: str, path: str | Path | None = None) -> None:
        self.reason = reason
        self.path = path
        super().__init__(reason if path is None else f"{path}: " + reason)


class UntrustedModelError(ModelFileError):
    """A model file has parts of types that are not known to be harmless; nothing was loaded.

    Attributes
    ----------
    types : tuple of str
        Their names.
    """

    def __init__(self, types: Sequence[str], path: str | Path | None = None) -> None:
        self.types = tuple(types)
        super().__init__(
            "the model has parts of types that are not imcc's, scikit-learn's or NumPy's: "
            f"{', '.join(types)}; nothing was loaded. If you know where the file comes from, name "
            "them with " + given("trusted"),
            path,
        )
