"""Metrics where labels are not known, and with weights of rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import f1_score

from imcc.metrics import evaluate, macro_f1, micro_f1
from tests.naive import metrics as naive


@st.composite
def judged(draw):
    n, q = draw(st.integers(1, 8)), draw(st.integers(1, 7))
    cells = draw(hnp.arrays(np.int64, (n, q), elements=st.sampled_from([0, 1, 1, 2])))
    cells[0, 0] = 1
    truth = np.where(cells == 2, np.nan, cells.astype(float))
    scores = draw(hnp.arrays(np.float64, (n, q), elements=st.sampled_from([-1.0, 0.0, 0.5, 2.0])))
    weights = draw(hnp.arrays(np.int64, n, elements=st.integers(0, 3)))
    weights[0] = 1
    return truth, scores, weights


@given(problem=judged())
@settings(max_examples=100, deadline=None)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_unknown_labels_are_left_out(problem):
    truth, scores, weights = problem
    assert evaluate(truth, scores) == pytest.approx(
        naive.evaluate_known(truth, scores), nan_ok=True
    )
    weighted = evaluate(truth, scores, sample_weight=weights)
    assert weighted == pytest.approx(naive.evaluate_known(truth, scores, weights), nan_ok=True)
    repeated = evaluate(np.repeat(truth, weights, axis=0), np.repeat(scores, weights, axis=0))
    assert weighted == pytest.approx(repeated, nan_ok=True)


def test_other_metrics_leave_them_out():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, (30, 6)).astype(float)
    truth[rng.random(truth.shape) < 0.3] = np.nan
    truth[3] = np.nan
    scores = rng.normal(size=truth.shape)
    predicted = scores >= 0
    expected = [
        f1_score(truth[known, j], predicted[known, j], zero_division=0)
        for j, known in enumerate(~np.isnan(truth).T)
    ]
    assert macro_f1(truth, predicted) == pytest.approx(np.mean(expected))
    cells = ~np.isnan(truth)
    assert micro_f1(truth, predicted) == pytest.approx(f1_score(truth[cells], predicted[cells]))
    with pytest.raises(ValueError, match="only NaN"):
        evaluate(np.full((2, 2), np.nan), np.zeros((2, 2)))
