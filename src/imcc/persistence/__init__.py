"""Models as files: safe to load, and able to say what they are.

:func:`save_model` writes a skops file with a card: feature and label names, the fingerprint of the
training data, metrics and versions.  :func:`read_card` reads the card alone, :func:`load_model` the
model; :class:`ModelFile` does both and reads the file once.  Loading never runs code from the file:
types that are not known to be harmless are named in an error first, and pickles are refused.
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
