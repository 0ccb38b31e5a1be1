"""The rivals of the ensemble: all fit, tasks resume, limits are kept, weights are right."""

import json
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.svm import SVC

from imcc.datasets import Dataset, paper_splits, write
from imcc.metrics import average_precision
from imcc_paper.rivals import __main__ as program
from imcc_paper.rivals import page, task
from imcc_paper.rivals.fitting import View, as_rows, log_odds, loss, platt
from imcc_paper.rivals.methods import ENSEMBLE, METHODS, RIVALS, STACK, STACKED, Held
from imcc_paper.rivals.stacking import stack_weights


@pytest.fixture(scope="module")
def labelled(small_problem):
    X, Y, X_new, Y_new = small_problem
    # A label that no row has: its log-odds are those of its smoothed frequency.
    return X, np.column_stack([Y > 0, np.zeros(len(Y), bool)]), X_new, Y_new > 0


@pytest.mark.parametrize("method", [m for m in RIVALS if m != ENSEMBLE])
@pytest.mark.filterwarnings("ignore")
def test_every_method_learns_and_uses_what_tuning_found(method, labelled):
    if not program.has_package(method):
        pytest.skip(f"the package of {method} is not here")
    X, on, X_new, on_new = labelled
    rival = RIVALS[method]
    setting = rival.settings(1, X, 0)[0]
    tuned = rival.fit(X[:60], on[:60], setting, 3, Held(X[60:], on[60:]))
    assert tuned.scores(X[60:]).shape == on[60:].shape
    # Methods that are trained step by step, and only these, find a number of steps.
    boosted = method in ("lightgbm", "xgboost", "catboost", "mlp")
    assert set(tuned.found) == ({"steps"} if boosted else set())
    json.dumps(dict(tuned.found))
    scores = rival.fit(X, on, {**setting, **tuned.found}, 3, None).scores(X_new)
    assert np.isfinite(scores).all()
    assert average_precision(on_new, scores[:, :-1]) > 0.75
    if method not in ("mlknn", "ecc"):
        assert scores[:, -1] == pytest.approx(np.log(1 / 91), abs=1e-6)
    assert (expit(scores[:, -1]) < 0.05).all()
    if boosted:
        shorter = {**setting, "steps": [1] * 5 if method == "lightgbm" else 1}
        other = rival.fit(X, on, shorter, 3, None).scores(X_new)
        assert not np.allclose(other, scores)


def test_settings_begin_with_the_first_choices_and_are_different():
    rival = RIVALS["svm"]
    drawn = rival.settings(10, np.eye(3), 5)
    assert drawn[0] == {"C": 3.0, "width": 1.0, "view": "standard"}
    assert len({json.dumps(setting) for setting in drawn}) == 10
    assert rival.settings(10, np.eye(3), 5) == drawn
    assert rival.settings(10, np.eye(3), 6) != drawn
    assert rival.settings(99, sp.csr_matrix(np.eye(3)), 0)[0]["view"] == "tfidf"
    assert len(RIVALS["mlknn"].settings(99, np.eye(3), 0)) == 18  # there are no more


def test_views_of_new_rows_do_not_depend_on_them(small_problem):
    X, _, X_new, _ = small_problem
    for name in ("standard", "ranks", "root"):
        view = View(name, X)
        np.testing.assert_allclose(view(X_new)[:3], view(X_new[:3]))
    increasing = View("ranks", np.exp(X))(np.exp(X_new))  # does not change ranks
    np.testing.assert_allclose(increasing, View("ranks", X)(X_new))
    words = as_rows(np.where(np.abs(X) > 3, 1.0, 0.0))
    assert sp.issparse(words)
    for name in ("tfidf", "unit"):
        lengths = np.asarray(View(name, words)(words).power(2).sum(axis=1)).ravel()
        assert set(lengths.round(9)) <= {0.0, 1.0}
    with pytest.raises(ValueError, match="'other'"):
        View("other", X)


def test_platts_sigmoid_is_the_minimum_of_its_loss(small_problem):
    X, Y, *_ = small_problem
    on, scores = Y[:, 0] > 0, X[:, 0] * 3 + X[:, 1]
    n = on.sum()
    target = np.where(on, (n + 1) / (n + 2), 1 / (len(on) - n + 2))
    slow = minimize(
        lambda w: (np.logaddexp(0, z := w[0] * scores + w[1]) - target * z).sum(), [0.0, 0.0]
    ).x
    found = platt(scores, on)
    np.testing.assert_allclose(found, slow if slow[0] > 0 else found, atol=1e-3)
    assert platt(-scores if slow[0] > 0 else scores, on)[0] == 0.0
    # Scores that separate the rows have a finite slope.
    assert 0 < platt(np.where(on, 1.0, -1.0), on)[0] < 10


def test_the_svm_is_scikit_learns(labelled):
    """Twin: support vector machines with a kernel of the library, calibrated by its wrapper."""
    X, on, X_new, _ = labelled
    setting = {"C": 3.0, "width": 1.0, "view": "standard"}
    found = RIVALS["svm"].fit(X, on, setting, 3, None).scores(X_new)
    rows, new = (X - X.mean(0)) / X.std(0), (X_new - X.mean(0)) / X.std(0)
    gamma = 1 / np.mean([((rows - row) ** 2).sum(axis=1) for row in rows])
    folds = task.KFold(3, shuffle=True, random_state=3)
    for j in range(4):
        twin = CalibratedClassifierCV(
            SVC(C=3.0, gamma=gamma), method="sigmoid", cv=folds, ensemble=False
        ).fit(rows, on[:, j])
        expected = log_odds(twin.predict_proba(new)[:, 1])
        np.testing.assert_allclose(found[:, j], expected, atol=0.02)


def test_the_weights_of_a_stack_are_those_of_a_slow_search():
    rng = np.random.default_rng(1)
    on = rng.random((200, 3)) < 0.4
    members = np.where(on, 1.0, -1.0) * 0.5 + rng.normal(size=(3, 200, 3)) * [[[1.0]], [[2]], [[9]]]
    members[2] -= 2 * np.where(on, 1.0, -1.0)  # says the opposite: no weight
    found = stack_weights(members, on)
    slow = minimize(
        lambda w: loss(on, np.tensordot(w**2, members, 1)),  # squares are not negative
        np.ones(3),
        method="Nelder-Mead",
        options={"xatol": 1e-8, "fatol": 1e-12, "maxiter": 5000},
    )
    np.testing.assert_allclose(found, slow.x**2, atol=1e-3)
    assert found[2] == pytest.approx(0)
    assert loss(on, np.tensordot(found, members, 1)) <= min(loss(on, m) for m in members)


def test_large_sets_are_cut_and_test_rows_stay_apart(monkeypatch):
    monkeypatch.setattr(task, "MANY_ROWS", 50)
    monkeypatch.setattr(task, "MOST_TRAINING", 30)
    monkeypatch.setattr(task, "MOST_TEST", 5)
    monkeypatch.setattr(task, "TUNING_ROWS", 20)
    data = Dataset(np.eye(60), np.eye(60)[:, :2], name="many")
    for (train, test), (all_train, all_test) in zip(
        task.reported_splits(data), paper_splits(data, 3), strict=True
    ):
        assert (len(train), len(test)) == (30, 5)
        assert set(train) <= set(all_train)
        assert set(test) <= set(all_test)
    assert len(task.tuning_rows(data)) == 20
    small = Dataset(np.eye(40), np.eye(40)[:, :2], name="few")
    assert [len(train) for train, _ in task.reported_splits(small)] == [32] * 3
    with pytest.raises(ValueError, match="no_such_set"):
        task.load("no_such_set")


def run(folder, *arguments):
    """Run the program on a small set in processes of its own."""
    start = [sys.executable, "-m", "imcc_paper.rivals", "--csv", folder / "rows.csv"]
    start += ["--cache", folder / "cache", "--sets", folder / "tiny.npz", "--settings", "1"]
    ended = subprocess.run(
        [str(word) for word in (*start, *arguments)], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return program.stored_rows(folder / "rows.csv"), ended.stderr


@pytest.fixture
def tiny(tmp_path, small_problem):
    X, Y, X_new, Y_new = small_problem
    write(Dataset(np.vstack([X, X_new]), np.vstack([Y, Y_new]), name="tiny"), tmp_path / "tiny.npz")
    return tmp_path


@pytest.mark.slow
def test_tasks_give_rows_resume_and_are_stacked(tiny):
    members = [m for m in STACKED if m not in ("mlp", "ecc")]
    rows, _ = run(tiny, "--methods", ENSEMBLE, *members)
    assert [row["status"] for row in rows] == ["done"] * 3 * (1 + len(members))
    assert {key[1:] for key in map(program.key, rows)} == {
        (method, split) for method in (ENSEMBLE, *members) for split in task.SPLITS
    }
    # The stack waits for its members.
    rows, said = run(tiny, "--methods", STACK)
    assert "1 tasks are left" in said
    rows, _ = run(tiny, "--methods", "mlp", "ecc", STACK, "--jobs", "2")
    again, _ = run(tiny, "--methods", STACK, *STACKED)
    assert len(again) == len(rows) == 3 * (2 + len(STACKED))
    stack = [row for row in rows if row["method"] == STACK]
    assert set(json.loads(stack[0]["settings"])) == set(STACKED)
    parts = [row for row in rows if row["method"] in STACKED and row["split"] == 0]
    assert stack[0]["tune_seconds"] == pytest.approx(sum(row["tune_seconds"] for row in parts))
    assert stack[0]["average_precision"] > 0.75
    # Rows that the file lost come back from the cache; a second file adds nothing.
    whole = (tiny / "rows.csv").read_text()
    (tiny / "rows.csv").write_text("".join(whole.splitlines(True)[:-2]))
    back, _ = run(tiny, "--methods", *METHODS, "--minutes", "0")
    assert {program.key(row) for row in back} == {program.key(row) for row in rows}
    (tiny / "other.csv").write_text(whole)
    program.main(["--csv", str(tiny / "rows.csv"), "--merge", str(tiny / "other.csv")])
    assert len(program.stored_rows(tiny / "rows.csv")) == len(rows)


def test_what_needs_too_long_has_rows_that_say_so(tiny, monkeypatch):
    cache = tiny / "cache"

    def endless(*_):
        while True:
            pass

    monkeypatch.setitem(RIVALS, "mlknn", task.RIVALS["mlknn"].__class__(endless, {"k": (1,)}))
    task.Task(str(tiny / "tiny.npz"), "mlknn", cache, task.Limits(1, 1.0, 1.0)).run()
    rows = [task.row_of(cache / "tiny.npz", "mlknn", split) for split in task.SPLITS]
    assert [row["status"] for row in rows] == ["over the cap"] * 3
    assert "more than 1 CPU seconds" in rows[0]["remark"]
    assert (rows[0]["n_settings"], rows[0]["tune_seconds"]) == (0, 1.0)


def test_a_failure_has_rows_too_and_the_end_is_kept(tiny, monkeypatch):
    cache = tiny / "cache"

    def broken(*_):
        raise ValueError("no such thing")

    monkeypatch.setitem(RIVALS, "mlknn", task.RIVALS["mlknn"].__class__(broken, {"k": (1,)}))
    with pytest.raises(task.NoTimeError):
        task.Task(str(tiny / "tiny.npz"), "mlknn", cache, task.Limits(), until=0.0).run()
    task.Task(str(tiny / "tiny.npz"), "mlknn", cache, task.Limits()).run()
    row = task.row_of(cache / "tiny.npz", "mlknn", 0)
    assert (row["status"], row["remark"]) == ("failed", "ValueError: no such thing")


def made_row(data, method, split, value, status="done", **more):
    numbers = dict.fromkeys((*task.METRICS, *task.SECONDS), value)
    return {
        **numbers,
        **{"dataset": data, "method": method, "split": split, "status": status},
        **{"cap": 120.0, "fit_cap": 300.0},
        **more,
    }


def test_the_tables_compare_with_the_ensemble():
    rows = []
    for data, own, other in (("image", 0.8, 0.7), ("yeast", 0.6, 0.7)):
        for split in task.SPLITS:
            rows.append(made_row(data, ENSEMBLE, split, own))
            rows.append(made_row(data, "svm", split, other + split / 100))
    rows.append(made_row("scene", ENSEMBLE, 0, 0.9))  # not finished: does not count
    rows += [made_row("yeast", "xgboost", split, 0.5) for split in task.SPLITS]
    rows += [made_row("image", "mlp", split, np.nan, "over the cap") for split in task.SPLITS]
    for data, other in (("a", 0.1), ("b", 0.4)):  # outside
        for split in task.SPLITS:
            rows += [made_row(data, method, split, other) for method in ("lightgbm", "xgboost")]
            rows.append(made_row(data, ENSEMBLE, split, 0.5))
    blocks = page.blocks(rows, [["plain", *[""] * 5]])
    assert blocks["rivals-without"].startswith("without `a`, where it is largest, it is +0.1000 ±")
    assert "| plain |  |" in blocks["rivals"]
    lines = blocks["rivals-tables"].split("The paper's data sets:\n\n")[1].splitlines()
    assert lines[2].startswith("| ensemble | 2 | 0.7000 |")
    assert lines[3].startswith("| RBF-SVM | 2 | 0.7100 |")
    assert "| -0.0100 ± 1.2706 | 1 / 1 |" in lines[3]
    assert lines[4].startswith("| XGBoost | 1 | 0.5000 (0.6000) |")
    assert "| +0.1000 | 1 / 0 |" in lines[4]
    assert "| image | 0.8000 | +0.0900 ± 0.0248 |  |" in lines
    assert "tuned in 120 CPU seconds" in blocks["rivals"]
    assert "RBF-SVM" not in blocks["rivals"]  # too few data sets for a row
    for split in task.SPLITS:
        rows += [made_row("genbase", ENSEMBLE, split, 0.4), made_row("genbase", "svm", split, 0.2)]
    line = page.blocks(rows, [])["rivals"].splitlines()[2]
    assert line.startswith("| RBF-SVM | +0.0600 ± 0.3")
    assert "(2 of 3)" in line
    assert " |  |  | " in line  # none outside
