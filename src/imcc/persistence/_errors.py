"""Errors of model files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from imcc._utils.errors import ImccError, given


class ModelFileError(ImccError):
    """Raised if a file is not a valid model file, or a model cannot be saved.

    The file is not a model file, is damaged, or was written by an incompatible version.

    Parameters
    ----------
    reason : str
        What is wrong and what to do.
    path : str or Path, default=None
        The file.
    """

    def __init__(self, reason: str, path: str | Path | None = None) -> None:
        self.reason = reason
        self.path = path
        super().__init__(reason if path is None else f"{path}: " + reason)


class UntrustedModelError(ModelFileError):
    """Raised if a model file contains types that are not trusted; nothing is loaded.

    Parameters
    ----------
    types : sequence of str
        Names of the types that are not trusted.
    path : str or Path, default=None
        The file.

    Attributes
    ----------
    types : tuple of str
        Names of the types that are not trusted.
    """

    def __init__(self, types: Sequence[str], path: str | Path | None = None) -> None:
        self.types = tuple(types)
        super().__init__(
            f"the model contains types that are not trusted: {', '.join(types)}; nothing was "
            "loaded. If you trust the source of the file, pass their names with "
            + given("trusted"),
            path,
        )


def require(holds: bool, problem: str) -> None:
    """Raise a ModelFileError that says how a file is damaged, unless a condition holds."""
    if not holds:
        raise ModelFileError(f"the file is damaged: {problem}")


@contextmanager
def damage_reported(path: str | Path) -> Iterator[None]:
    """Turn every exception into a ModelFileError that names the file.

    Damaged files make zipfile, json, NumPy and skops raise almost any exception.
    """
    try:
        yield
    except ImportError:
        raise
    except ModelFileError as error:
        raise ModelFileError(error.reason, path) from error.__cause__
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else ""
        raise ModelFileError(
            "the model cannot be loaded: the file is damaged or was written by an incompatible "
            f"version ({type(error).__name__}: {reason})",
            path,
        ) from error
