"""Sizes of blocks: in force within a with statement, and as before after it."""

from dataclasses import fields

import numpy as np
import pytest

from imcc import IMCCClassifier
from imcc._utils.config import Config, config_context, get_config
from imcc.metrics import evaluate


def test_settings_are_in_force_within_the_statement_only():
    before = get_config()
    with config_context(width_rows=7) as inside:
        assert get_config() is inside
        assert get_config().width_rows == 7
        with config_context(sum_entries=9):
            assert (get_config().width_rows, get_config().sum_entries) == (7, 9)
        assert get_config().sum_entries == Config().sum_entries
    assert get_config() is before


def test_unknown_settings_are_named():
    with (
        pytest.raises(TypeError, match="with_rows"),
        config_context(with_rows=1),
    ):
        pass


def test_no_size_of_blocks_changes_the_result():
    X = np.random.default_rng(0).normal(size=(60, 4))
    small = {field.name: 50 for field in fields(Config) if field.name.endswith("_entries")}
    assert len(small) == 8
    for model in ({}, {"kernel": "laplacian"}, {"kernel": "linear"}, {"approximation": "nystroem"}):
        scores = []
        for settings in ({}, small):
            with config_context(**settings):
                clf = IMCCClassifier(3, random_state=0, **model).fit(X, X > 0)
                found = clf.decision_function(X)
                scores.append(np.append(found.ravel(), list(evaluate(X > 0, found).values())))
        np.testing.assert_allclose(*scores, rtol=1e-8)
