"""Choices of options, without importing the packages that compute.

``imcc COMMAND --help`` and shell completion show these values and must not import scikit-learn.
``tests/cli/test_start.py`` compares them with the packages that define them.
"""

from __future__ import annotations

# imcc.metrics.METRICS, and what else an experiment measures.
METRICS = ("one_error", "hamming_loss", "ranking_loss", "coverage", "average_precision")
ALL_METRICS = (*METRICS, "micro_f1", "macro_f1", "subset_accuracy", "macro_auc")
LABEL_RANGES = ("label_ap_to_1", "label_ap_1_to_5", "label_ap_5_to_20", "label_ap_above_20")

# What `imcc tune` fits, and imcc._math.thresholds.
MODELS = ("ensemble", "imcc")
CRITERIA = ("f1", "balanced_accuracy", "accuracy", "micro_f1")
