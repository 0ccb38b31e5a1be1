"""Writing and reading model files: a skops archive with a card in it."""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from imcc._utils.files import write_whole
from imcc.datasets import Dataset
from imcc.persistence._archive import CARD, from_stored, to_stored
from imcc.persistence._card import ModelCard, card_of, make_card
from imcc.persistence._checks import check_model
from imcc.persistence._errors import ModelFileError, UntrustedModelError, damage_reported, require
from imcc.persistence._trust import loads, require_skops, unknown_types

_REFUSED = "pickles can run arbitrary code when they are loaded and are not supported"


def save_model(
    model: Any,
    path: str | os.PathLike[str],
    data: Dataset | None = None,
    *,
    metrics: Mapping[str, float] | None = None,
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
        The training data.  The card then contains the names of their features and labels, their
        fingerprint and how their columns were encoded, but not the data.  Without data, the names
        are those that the model was fitted with.  Note that kernel models contain the training
        rows.
    metrics : mapping of str to float, default=None
        Metrics to store in the card.  None means what the model knows: the cross-validated scores
        of a search, the held-out score of an ensemble, what thresholds were chosen by.
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
        If the model could not be loaded again, for example because it contains a lambda.
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
        card = make_card(model, data, metrics=metrics)
    buffer = io.BytesIO(_dump(model, card))
    with zipfile.ZipFile(buffer, "a", zipfile.ZIP_STORED) as archive:
        about = card.to_dict()
        about["sha256"] = _digest(archive, about)
        archive.writestr(CARD, json.dumps(about, indent=1))
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
    return load_with_digest(path, trusted)[0]


def load_with_digest(
    path: str | os.PathLike[str], trusted: Collection[str] = ()
) -> tuple[Any, ModelCard, str]:
    """Load a model, its card and the SHA-256 of the file, from the same reading of it."""
    if isinstance(trusted, str):
        raise TypeError(f"trusted must be a list of names, got the string {trusted!r}")
    file = Path(path)
    data, card = _open(file)
    archive, unknown = _checked(data, card, file)
    if refused := [name for name in unknown if name not in set(trusted)]:
        raise UntrustedModelError(refused, file)
    with damage_reported(file):
        model = loads(archive, unknown)
        check_model(model, card)
    return model, card, hashlib.sha256(data).hexdigest()


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
        ``data_name``, ``fingerprint`` and ``n_rows`` of the training data, ``metrics``,
        ``versions``, ``imcc_version`` and ``created``; ``to_dict()``.

    Raises
    ------
    ModelFileError
        As for :func:`load_model`.
    """
    return _open(Path(path))[1]


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
    file = Path(path)
    return _checked(*_open(file), file)[1]


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
    with damage_reported(file), zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        names = {info.filename for info in members}
        if CARD not in names:
            raise ModelFileError(
                "this is a zip archive, not a model file (a .skops file written by imcc); save a "
                f"model with imcc.persistence.save_model ({_REFUSED})"
            )
        # Nothing is compressed, so that no member can be larger than the file.
        is_plain = all(info.compress_type == zipfile.ZIP_STORED for info in members)
        require(is_plain and len(names) == len(members), "members are compressed or repeated")
        about = json.loads(archive.read(CARD))
        require(isinstance(about, dict), "its card is not an object")
        expected = about.pop("sha256", None)
        card = card_of(about)
        require(_digest(archive, about) == expected, "its checksum is wrong")
    return data, card


def _digest(archive: zipfile.ZipFile, about: dict[str, Any]) -> str:
    """Return the checksum of a card without one, and of all other members of an archive."""
    digest = hashlib.sha256(json.dumps(about).encode())
    for name in sorted(archive.namelist()):
        if name != CARD:
            content = archive.read(name)
            digest.update(f"{name}\0{len(content)}\0".encode("utf-8", "surrogatepass"))
            digest.update(content)
    return digest.hexdigest()


def _checked(data: bytes, card: ModelCard, file: Path) -> tuple[bytes, list[str]]:
    """Return the checked archive, as skops reads it, and the types that are not trusted."""
    with damage_reported(file):
        archive, types = from_stored(data, card.imcc_version)
        return archive, unknown_types(archive, types)


def _dump(model: Any, card: ModelCard) -> bytes:
    """Return the model as an archive, after checking that it can be loaded."""
    try:
        stored = to_stored(require_skops().dumps(model))
        archive, types = from_stored(stored, card.imcc_version)
        check_model(loads(archive, unknown_types(archive, types)), card)
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
