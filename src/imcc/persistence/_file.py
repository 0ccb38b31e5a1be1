"""Writing and reading model files: a skops archive with a card in it."""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from imcc._utils.files import write_whole
from imcc.datasets import Dataset
from imcc.persistence._archive import CARD, from_stored, to_stored
from imcc.persistence._card import ModelCard, make_card, parse_card, write_card
from imcc.persistence._checks import check_model
from imcc.persistence._errors import ModelFileError, UntrustedModelError, damage_reported
from imcc.persistence._trust import loads, require_skops, unknown_types

_REFUSED = "pickles can run arbitrary code when they are loaded and are not supported"


def save_model(
    model: Any,
    path: str | os.PathLike[str],
    data: Dataset | None = None,
    *,
    feature_names: Sequence[str] | None = None,
    label_names: Sequence[str] | None = None,
    metrics: Mapping[str, float] | None = None,
    notes: str = "",
    card: ModelCard | None = None,
) -> Path:
    """Save a fitted model to a file.

    Parameters
    ----------
    model : fitted classifier
        A classifier of imcc, a pipeline or search around one, or any other scikit-learn estimator.
    path : str or path-like
        File to write, by convention with the suffix ``.skops``.  An existing file is overwritten;
        if saving fails, it remains unchanged.
    data : Dataset, default=None
        The training data.  The card then contains their names, their fingerprint and how their
        columns were encoded, but not the data.  Note that kernel models contain the training rows.
    feature_names, label_names : sequence of str, default=None
        Names of the features and labels.  None means those of ``data`` or, without data, those that
        the model was fitted with.
    metrics : mapping of str to float, default=None
        Metrics to store in the card.  None means the cross-validated score of a search.
    notes : str, default=""
        Free text to store in the card.
    card : ModelCard, default=None
        A card to write instead of one made from the other arguments, such as the result of
        :func:`read_card` for a model that is saved again.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    ModelFileError
        If the model could not be loaded again, for example because it contains a lambda or
        coefficients that are not finite.
    ImportError
        If skops is not installed.

    See Also
    --------
    load_model : Loads the model.
    read_card : Reads the card without loading the model.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from imcc import IMCCClassifier
    >>> from imcc.datasets import load_dataset
    >>> from imcc.persistence import load_model, read_card, save_model
    >>> folder = tempfile.TemporaryDirectory()
    >>> yeast = load_dataset("yeast")[:200]
    >>> clf = IMCCClassifier(n_clusters=8, random_state=0).fit(yeast.X, yeast.Y)
    >>> file = save_model(clf, pathlib.Path(folder.name, "yeast.skops"), yeast)
    >>> read_card(file).label_names[:2], read_card(file).fingerprint == yeast.fingerprint()
    (('Class1', 'Class2'), True)
    >>> again = load_model(file)
    >>> bool((again.decision_function(yeast.X) == clf.decision_function(yeast.X)).all())
    True
    >>> folder.cleanup()
    """
    if card is None:
        card = make_card(
            model,
            data,
            feature_names=feature_names,
            label_names=label_names,
            metrics=metrics,
            notes=notes,
        )
    buffer = io.BytesIO(_dump(model, card))
    with zipfile.ZipFile(buffer, "a", zipfile.ZIP_STORED) as archive:
        digest = _digest(archive)
        # Same date as the other members; the time of creation is only in the card.
        archive.writestr(zipfile.ZipInfo(CARD), write_card(card, digest))
    return write_whole(path, buffer.getvalue())


def load_model(path: str | os.PathLike[str], *, trusted: Collection[str] = ()) -> Any:
    """Load a model that was saved with :func:`save_model`.

    Parameters
    ----------
    path : str or path-like
        The model file.
    trusted : collection of str, default=()
        Names of types to trust, in addition to those that the models of imcc contain.
        :func:`untrusted_types` lists the types that need this.

    Returns
    -------
    estimator
        The fitted model.

    Raises
    ------
    UntrustedModelError
        If the file contains other types; nothing is loaded.
    ModelFileError
        If the file is not a model file, is damaged, or was written by an incompatible version.
    ImportError
        If skops is not installed.

    See Also
    --------
    save_model : Saves a model.
    read_card : Reads the card only.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from imcc import IMCCClassifier
    >>> from imcc.persistence import load_model, save_model
    >>> X, Y = make_multilabel_classification(50, random_state=0)
    >>> folder = tempfile.TemporaryDirectory()
    >>> clf = IMCCClassifier(n_clusters=4).fit(X, Y)
    >>> load_model(save_model(clf, pathlib.Path(folder.name, "model.skops")))
    IMCCClassifier(n_clusters=4)
    >>> folder.cleanup()
    """
    return ModelFile(path).load(trusted)


def read_card(path: str | os.PathLike[str]) -> ModelCard:
    """Read the card of a model file without loading the model.

    Parameters
    ----------
    path : str or path-like
        The model file.

    Returns
    -------
    ModelCard
        With ``model`` (names of classes), ``params``, ``feature_names``, ``label_names``,
        ``data_name``, ``fingerprint`` and ``n_rows`` of the training data, ``metrics``, ``notes``,
        ``versions``, ``imcc_version`` and ``created``; ``to_dict()``.

    Raises
    ------
    ModelFileError
        As for :func:`load_model`.
    """
    return ModelFile(path).card


def untrusted_types(path: str | os.PathLike[str]) -> list[str]:
    """List the types in a model file that are not trusted, without loading the model.

    Parameters
    ----------
    path : str or path-like
        The model file.

    Returns
    -------
    list of str
        Names of the types, for the parameter ``trusted`` of :func:`load_model`.  Empty for a model
        of imcc; other estimators of scikit-learn around or inside of it are listed.

    Raises
    ------
    ModelFileError
        As for :func:`load_model`.
    """
    return ModelFile(path).untrusted_types()


class ModelFile:
    """A model file that is read and checked once.

    Parameters
    ----------
    path : str or path-like
        The model file.

    Attributes
    ----------
    path : Path
        The file.
    card : ModelCard
        The card of the file.
    digest : str
        SHA-256 of the file.

    Raises
    ------
    ModelFileError
        If the file is not a model file, is damaged, or was written by an incompatible version.

    See Also
    --------
    load_model : Loads the model directly.
    read_card : Reads the card directly.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._data, self.card = _open(self.path)
        self.digest = hashlib.sha256(self._data).hexdigest()
        self._checked: tuple[bytes, list[str]] | None = None

    def untrusted_types(self) -> list[str]:
        """List the types in the file that are not trusted; see :func:`untrusted_types`."""
        return self._check()[1]

    def load(self, trusted: Collection[str] = ()) -> Any:
        """Load the model; see :func:`load_model`.

        Parameters
        ----------
        trusted : collection of str, default=()
            Names of types to trust.

        Returns
        -------
        estimator
            The fitted model.
        """
        if isinstance(trusted, str):
            raise TypeError(f"trusted must be a list of names, got the string {trusted!r}")
        archive, unknown = self._check()
        if refused := [found for found in unknown if found not in set(trusted)]:
            raise UntrustedModelError(refused, str(self.path))
        with damage_reported(self.path):
            model = loads(archive, unknown)
            check_model(model, self.card, str(self.path))
        return model

    def _check(self) -> tuple[bytes, list[str]]:
        """Return the checked archive, as skops reads it, and the types that are not trusted."""
        if self._checked is None:
            with damage_reported(self.path):
                writer = self.card.imcc_version
                archive, types = from_stored(self._data, writer, str(self.path))
                self._checked = archive, unknown_types(archive, types)
            self._data = b""
        return self._checked


def _open(file: Path) -> tuple[bytes, ModelCard]:
    """Return the bytes of a model file, after checking its checksum, and its card."""
    if file.is_dir():
        raise ModelFileError("this is a folder; pass a model file", file)
    data = file.read_bytes()
    if not data.startswith(b"PK"):
        raise ModelFileError(
            "this is not a model file (a .skops file written by imcc): "
            + ("it is empty" if not data else f"if it is a pickle, {_REFUSED}; use save_model"),
            file,
        )
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            names = [info.filename for info in members]
            # Compressed members are rejected, so that no member can be larger than the file.
            odd = [info for info in members if info.compress_type != zipfile.ZIP_STORED]
            digest = None if odd or len(set(names)) < len(names) else _digest(archive)
            content = archive.read(CARD) if CARD in names else None
    # Damaged archives make zipfile raise almost any exception, such as struct.error and KeyError.
    except Exception as error:
        raise ModelFileError(f"the file is damaged or incomplete ({error})", file) from error
    if content is None:
        raise ModelFileError(
            "this is a zip archive, not a model file (a .skops file written by imcc); save a model "
            f"with imcc.persistence.save_model ({_REFUSED})",
            file,
        )
    card, expected = parse_card(content, str(file))
    if digest != expected:
        raise ModelFileError("the file is damaged: its checksum is wrong", file)
    return data, card


def _digest(archive: zipfile.ZipFile) -> str:
    digest = hashlib.sha256()
    for name in sorted(archive.namelist()):
        if name != CARD:
            content = archive.read(name)
            digest.update(f"{name}\0{len(content)}\0".encode("utf-8", "surrogatepass"))
            digest.update(content)
    return digest.hexdigest()


def _dump(model: Any, card: ModelCard) -> bytes:
    """Return the model as an archive, after checking that it can be loaded."""
    name = "this model"
    try:
        stored = to_stored(require_skops().dumps(model))
        archive, types = from_stored(stored, card.imcc_version, name)
        check_model(loads(archive, unknown_types(archive, types)), card, name)
    except ImportError:
        raise
    except Exception as error:  # skops raises what the types in the model make it raise
        reason = getattr(error, "reason", str(error))
        raise ModelFileError(
            f"the model cannot be saved, because it could not be loaded again ({reason}); "
            "functions in it (a kernel, a progress callback) must be importable by name, not "
            "lambdas"
        ) from error
    return stored
