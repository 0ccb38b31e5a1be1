"""Writing and reading model files: a skops archive with a card in it."""

from __future__ import annotations

import datetime
import hashlib
import io
import os
import zipfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

import imcc
from imcc._utils.files import write_whole
from imcc._utils.wrappers import describe
from imcc.datasets import Dataset
from imcc.persistence._about import metrics_of, names_of, params_of, versions
from imcc.persistence._archive import CARD, SCHEMA, from_stored, to_stored
from imcc.persistence._card import ModelCard, pairs_of, parse_card, write_card
from imcc.persistence._checks import check_model
from imcc.persistence._errors import ModelFileError, UntrustedModelError
from imcc.persistence._trust import loads, require_skops, unknown_types

# What files begin with that may hold code: pickles, and the packers that joblib puts around them.
_PICKLE_PROTOCOLS = tuple(b"\x80" + bytes([number]) for number in range(2, 6))
_PACKED = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"\x04\x22\x4d\x18": "lz4",
    b"\x78\x01": "zlib",
    b"\x78\x5e": "zlib",
    b"\x78\x9c": "zlib",
    b"\x78\xda": "zlib",
}
_REFUSED = "pickles can run any code when they are loaded, and are refused"


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
    """Write a fitted model to a file.

    Parameters
    ----------
    model : fitted classifier
        One of imcc's, or a pipeline or search with one; any scikit-learn estimator works.
    path : path
        The file, ``.skops`` by custom.  It appears whole or not at all: a failure leaves what was
        there before.
    data : Dataset, optional
        The training data: the file then has their names, fingerprint and how their words were
        coded (not the data themselves; but kernel models hold the training rows).
    feature_names, label_names : sequence of str, optional
        Unless given, those of the data, or those that the model has kept.
    metrics : mapping of str to float, optional
        How good the model is; unless given, the cross-validated score of a search.
    notes : str
        Anything.
    card : ModelCard, optional
        What :func:`make_card` gave for this model; made from the other arguments unless given.

    Returns
    -------
    Path

    Raises
    ------
    ModelFileError
        If the model cannot be saved so that it can be loaded again: with a lambda or with
        coefficients that are not finite in it, say.

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
        # Dated like the other members, so that the card alone says when the file was made.
        archive.writestr(zipfile.ZipInfo(CARD), write_card(card, digest))
    return write_whole(path, buffer.getvalue())


def make_card(
    model: Any,
    data: Dataset | None = None,
    *,
    feature_names: Sequence[str] | None = None,
    label_names: Sequence[str] | None = None,
    metrics: Mapping[str, float] | None = None,
    notes: str = "",
) -> ModelCard:
    """Return what a file would say about a fitted model.

    Parameters
    ----------
    model, data, feature_names, label_names, metrics, notes
        As for :func:`save_model`.

    Returns
    -------
    ModelCard
    """
    check_is_fitted(model)
    return ModelCard(
        imcc_version=imcc.__version__,
        versions=versions(),
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        model=describe(model),
        params=params_of(model),
        feature_names=names_of(model, data, feature_names, "feature"),
        label_names=names_of(model, data, label_names, "label"),
        data_name="" if data is None else data.name,
        fingerprint="" if data is None else data.fingerprint(),
        n_rows=None if data is None else data.n_rows,
        metrics=metrics_of(model) if metrics is None else {k: float(v) for k, v in metrics.items()},
        columns={} if data is None or data.coding is None else data.coding.to_dict(),
        label_pairs=None if data is None else pairs_of(data.Y),
        notes=notes,
    )


def load_model(path: str | os.PathLike[str], *, trusted: Collection[str] = ()) -> Any:
    """Load a model from a file that :func:`save_model` wrote.

    Parameters
    ----------
    path : path
    trusted : collection of str
        Names of types that may be loaded though they are not imcc's own, nor among those of
        NumPy, SciPy and scikit-learn that skops knows to be harmless.  What needs naming,
        :func:`untrusted_types` tells.

    Returns
    -------
    The model, fitted.

    Raises
    ------
    UntrustedModelError
        If there are parts of other types; nothing has been loaded then.
    ModelFileError
        If the file is no model, is damaged, or was written by a version that this one cannot read.
    """
    return ModelFile(path).load(trusted)


def read_card(path: str | os.PathLike[str]) -> ModelCard:
    """Return what a model file says about itself; the model is not loaded.

    Parameters
    ----------
    path : path

    Raises
    ------
    ModelFileError
        As for :func:`load_model`.
    """
    return ModelFile(path).card


def untrusted_types(path: str | os.PathLike[str]) -> list[str]:
    """Return the types in a model file that are not trusted; nothing is loaded.

    Parameters
    ----------
    path : path

    Returns
    -------
    list of str
        Empty for a model of imcc's and scikit-learn's own parts.
    """
    return ModelFile(path).untrusted_types()


class ModelFile:
    """A model file that is read and checked once: its card, what needs trust, and the model.

    Parameters
    ----------
    path : path

    Attributes
    ----------
    path : Path
    card : ModelCard
        What the file says about itself.

    Raises
    ------
    ModelFileError
        If the file is no model, is damaged, or was written by a version that this one cannot read.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._data, self.card = _open(self.path)
        self._archive: bytes | None = None

    def untrusted_types(self) -> list[str]:
        """Return the types in the file that are not trusted; nothing is loaded."""
        return unknown_types(self._checked(), str(self.path))

    def load(self, trusted: Collection[str] = ()) -> Any:
        """Return the model; see :func:`load_model`."""
        if isinstance(trusted, str):
            raise TypeError(f"trusted must be a list of names, got the string {trusted!r}")
        unknown = self.untrusted_types()
        if refused := [found for found in unknown if found not in set(trusted)]:
            raise UntrustedModelError(refused, str(self.path))
        model = loads(self._checked(), unknown, str(self.path))
        check_model(model, self.card, str(self.path))
        return model

    def _checked(self) -> bytes:
        """Return the archive as skops reads it, with all arrays checked."""
        if self._archive is None:
            self._archive = from_stored(self._data, self.card.imcc_version, str(self.path))
            self._data = b""
        return self._archive


def _open(file: Path) -> tuple[bytes, ModelCard]:
    """Return the bytes of a model file, checked to be whole, and its card."""
    if file.is_dir():
        raise ModelFileError("this is a folder; give the model file in it", file)
    data = file.read_bytes()
    _refuse_others(data, file)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            names = [info.filename for info in members]
            # Nothing is packed, so that no member can be larger than the file.
            odd = [info for info in members if info.compress_type != zipfile.ZIP_STORED]
            digest = None if odd or len(set(names)) < len(names) else _digest(archive)
            content = archive.read(CARD) if CARD in names else None
    # A damaged archive makes zipfile raise nearly anything, struct.error and KeyError included.
    except Exception as error:
        raise ModelFileError(f"the file is damaged or cut off ({error})", file) from error
    if content is None:
        raise ModelFileError(_what_else(names), file)
    card, expected = parse_card(content, str(file))
    if digest != expected:
        raise ModelFileError("the file is damaged: its checksum is wrong", file)
    return data, card


def _refuse_others(data: bytes, file: Path) -> None:
    """Return what a file is that cannot be a model, by its content."""
    if not data:
        raise ModelFileError("the file is empty", file)
    if data.startswith(b"PK"):
        return
    if data.startswith(_PICKLE_PROTOCOLS) or (data.endswith(b".") and data[:1] in b"c(]}"):
        raise ModelFileError(f"this is a pickle: {_REFUSED}; save the model with save_model", file)
    for magic, packer in _PACKED.items():
        if data.startswith(magic):
            raise ModelFileError(
                f"this is a {packer} file, perhaps a pickle of joblib's: {_REFUSED}; save the "
                "model with save_model",
                file,
            )
    raise ModelFileError("this is no model file (a .skops file of imcc's)", file)


def _what_else(names: Sequence[str]) -> str:
    if any(name.endswith((".pkl", ".pickle")) for name in names):
        return f"this is an archive with a pickle in it: {_REFUSED}"
    if SCHEMA in names:
        return (
            "this is a skops file without imcc's card: it was not written by imcc; load it with "
            "skops.io.load, and save it with imcc.persistence.save_model"
        )
    return "this is a zip archive, and no model file (a .skops file of imcc's)"


def _digest(archive: zipfile.ZipFile) -> str:
    digest = hashlib.sha256()
    for name in sorted(archive.namelist()):
        if name != CARD:
            content = archive.read(name)
            digest.update(f"{name}\0{len(content)}\0".encode("utf-8", "surrogatepass"))
            digest.update(content)
    return digest.hexdigest()


def _dump(model: Any, card: ModelCard) -> bytes:
    """Return the model as an archive, tried out by loading it."""
    name = "this model"
    try:
        stored = to_stored(require_skops().dumps(model))
        archive = from_stored(stored, card.imcc_version, name)
        check_model(loads(archive, unknown_types(archive, name), name), card, name)
    except ImportError:
        raise
    except Exception as error:  # skops raises what the types in the model make it raise
        reason = getattr(error, "reason", str(error))
        raise ModelFileError(
            f"the model cannot be saved so that it can be loaded again ({reason}); functions in "
            "it (a kernel, a progress callback) must be importable by name, not lambdas"
        ) from error
    return stored
