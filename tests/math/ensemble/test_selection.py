"""What decides, and the greedy choice."""

import numpy as np
import pytest

from imcc._math.ensemble.search import climb
from imcc._math.ensemble.selection import Criterion, choose_greedily
from imcc.metrics import METRICS, evaluate
from tests.backends import BACKENDS, array
from tests.naive import ensemble as naive


def make(n=60, q=4, n_members=5, seed=0):
    rng = np.random.RandomState(seed)
    on = rng.random_sample((n, q)) < 0.4
    members = [1.5 * on + rng.standard_normal((n, q)) - 0.7 for _ in range(n_members)]
    return on, members


@pytest.mark.parametrize("name", ["average_precision", "log_loss"])
def test_values_from_a_device_are_those_of_one_after_the_other(name):
    pytest.importorskip("torch")
    rng = np.random.RandomState(4)
    on = rng.random_sample((30, 3)) < 0.4
    members = [array("torch", rng.standard_normal((30, 3))) for _ in range(4)]
    criterion = Criterion(on, name, like=members[0])
    assert criterion.values(iter(members), members[0]) == [criterion(z) for z in members]


@pytest.mark.parametrize("rounds", [1, 3, 12])
@pytest.mark.parametrize("name", ["average_precision", "ranking_loss", "log_loss"])
def test_greedy_equals_the_obvious_loop(rounds, name):
    on, members = make()
    criterion = Criterion(on, name)
    weights, value = choose_greedily(members, criterion, rounds)
    chosen, expected = naive.greedy(members, criterion, rounds)
    counts = np.bincount(chosen, minlength=len(members))
    np.testing.assert_allclose(weights, counts / counts.sum())
    np.testing.assert_allclose(value, expected)
    assert value >= max(criterion(member) for member in members)


@pytest.mark.parametrize("name", METRICS)
def test_metrics_are_those_of_the_package(name):
    on, (scores, *_) = make()
    criterion = Criterion(on, name)
    sign = 1 if METRICS[name].greater_is_better else -1
    np.testing.assert_allclose(criterion(scores), sign * evaluate(on, scores)[name])
    np.testing.assert_allclose(criterion.reported(criterion(scores)), evaluate(on, scores)[name])


@pytest.mark.parametrize("name", [*METRICS, "log_loss"])
def test_weights_are_repeated_rows(name):
    on, (scores, *_) = make()
    weight = np.random.RandomState(1).randint(1, 4, len(on))
    again = np.repeat(np.arange(len(on)), weight)
    one = Criterion(on, name, weight=weight.astype(float))(scores)
    np.testing.assert_allclose(one, Criterion(on[again], name)(scores[again]))


@pytest.mark.parametrize("library", BACKENDS)
@pytest.mark.parametrize("name", [*METRICS, "log_loss"])
def test_other_libraries(library, name):
    on, (scores, *_) = make()
    own = array(library, scores)
    np.testing.assert_allclose(Criterion(on, name, like=own)(own), Criterion(on, name)(scores))


def test_a_binary_target_is_judged_as_two_classes():
    on, (scores, *_) = make(q=1)
    both = np.hstack([~on, on])
    expected = evaluate(both, np.hstack([-scores, scores]))["average_precision"]
    np.testing.assert_allclose(Criterion(on, "average_precision", binary=True)(scores), expected)


def test_one_label_is_judged_by_log_loss():
    on, (scores, *_) = make(q=1)
    criterion = Criterion(on, "average_precision")
    assert criterion.name == "log_loss"
    np.testing.assert_allclose(criterion(scores), -np.mean(np.logaddexp(0, scores) - on * scores))


def test_a_function_gets_labels_and_log_odds():
    on, (scores, *_) = make()

    def accuracy(y_true, log_odds):
        return float(np.mean((log_odds >= 0) == y_true))

    criterion = Criterion(on, accuracy)
    assert criterion.name == "accuracy"
    assert criterion(scores) == accuracy(on, scores)


def test_climbing_finds_the_top_from_anywhere():
    values = [1, 2, 5, 7, 6, 3]
    assert [climb(values.__getitem__, start, 6, 6) for start in range(6)] == [3] * 6
    assert climb(lambda i: 0.0, 2, 6, 6) == 2
    assert climb(lambda i: 0.0, 0, 1, 6) == 0


def test_climbing_asks_for_few_values():
    asked = []

    def value(i):
        asked.append(i)
        return float(i)

    assert climb(value, 2, 9, 3) == 4
    assert set(asked) == {2, 3, 4}
