"""Errors of experiments."""

from __future__ import annotations

from imcc._utils.errors import ImccError


class ExperimentError(ImccError, ValueError):
    """The description of an experiment is invalid."""


class StoreError(ImccError):
    """A results store cannot be opened, read or written; existing results are not changed."""
