"""Choices of options, without importing the packages that compute.

``imcc COMMAND --help`` and shell completion show these values and must not import scikit-learn.
``tests/cli/test_start.py`` compares them with the packages that define them.
"""

from __future__ import annotations

import importlib.resources
import json

# imcc.metrics.METRICS, and what else an experiment measures.
METRICS = ("one_error", "hamming_loss", "ranking_loss", "coverage", "average_precision")
ALL_METRICS = (*METRICS, "micro_f1", "macro_f1", "subset_accuracy", "macro_auc")

# What `imcc tune` fits.
MODELS = ("ensemble", "imcc")

# imcc._math.thresholds
CRITERIA = ("f1", "balanced_accuracy", "accuracy", "micro_f1")

# imcc.datasets
FORMATS = ("arff", "mat", "svmlight", "npz", "csv", "parquet", "xlsx")
NOMINAL = ("onehot", "ordinal")
INDEX_BASES = ("auto", "zero", "one")
DEFAULT_DATASET = "yeast"

# imcc.experiment
EACH = "each"


def dataset_names() -> tuple[str, ...]:
    """Return the names of ``imcc.datasets.list_datasets()``, from the file that it reads.

    >>> "yeast" in dataset_names()
    True
    """
    registry = importlib.resources.files("imcc").joinpath("datasets", "registry.json")
    return tuple(entry["name"] for entry in json.loads(registry.read_text("utf-8"))["datasets"])
