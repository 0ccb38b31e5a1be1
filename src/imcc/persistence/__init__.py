"""Saving and loading models: files that are safe to load and describe themselves.

:func:`save_model` writes a skops file with a card: feature and label names, fingerprint of the
training data, metrics and versions.  :func:`read_card` reads only the card and :func:`load_model`
the model.  Loading never runs code from the file: types that are not trusted raise an error before
anything is loaded, and pickles are rejected.
"""

from imcc.persistence._errors import ModelFileError, UntrustedModelError
from imcc.persistence._file import load_model, read_card, save_model, untrusted_types

__all__ = [
    "ModelFileError",
    "UntrustedModelError",
    "load_model",
    "read_card",
    "save_model",
    "untrusted_types",
]
