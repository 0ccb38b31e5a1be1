"""What goes wrong with experiments, said in one way."""

from __future__ import annotations


class ExperimentError(ValueError):
    """The description of an experiment is wrong: what, and what to do."""


class StoreError(Exception):
    """A results store cannot be opened, read or written; nothing was overwritten."""
