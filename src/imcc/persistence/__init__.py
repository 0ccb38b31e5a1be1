"""Saving and loading models: files that are safe to load and describe themselves.

:func:`save_model` writes a skops file with a card: feature and label names, fingerprint of the
training data, metrics and versions.  :func:`read_card` reads only the card and :func:`load_model`
the model; :class:`ModelFile` does both and reads the file once.  Loading never runs code from the
file: types that are not trusted raise an error before anything is loaded, and pickles are rejected.
"""

from imcc.persistence._card import FORMAT, ModelCard, pairs_of
from imcc.persistence._errors import ModelFileError, UntrustedModelError
from imcc.persistence._file import (
    ModelFile,
    load_model,
    make_card,
    read_card,
    save_model,
    untrusted_types,
)
from imcc.persistence._trust import require_skops

__all__ = [
    "FORMAT",
    "ModelCard",
    "ModelFile",
    "ModelFileError",
    "UntrustedModelError",
    "load_model",
    "make_card",
    "pairs_of",
    "read_card",
    "require_skops",
    "save_model",
    "untrusted_types",
]
