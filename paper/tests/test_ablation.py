"""The ablation: each step adds one option, up to the defaults; rows are stored and not repeated."""

import itertools

import numpy as np
import pytest

from imcc import KernelEnsembleClassifier
from imcc.datasets import Dataset
from imcc.metrics import METRICS
from imcc_paper import _rows, ablation
from imcc_paper.places import DOCS, RESULTS


def test_each_step_adds_an_option_and_the_last_one_is_the_default():
    own = KernelEnsembleClassifier().get_params()
    left = [set(ablation.options_of(step)) for step in ablation.STEPS]
    assert left[-1] == set()
    for before, after in itertools.pairwise(left):
        assert after < before
    for name, value in ablation.options_of("one kernel").items():
        assert own[name] != value


@pytest.fixture
def tiny(monkeypatch):
    rng = np.random.RandomState(3)
    X = rng.uniform(0.1, 3, size=(90, 5)) ** 2
    H = np.sin(X @ rng.standard_normal((5, 3)))
    Y = (H @ rng.standard_normal((3, 4)) + 0.3 * rng.standard_normal((90, 4)) > 0.4).astype(int)
    data = Dataset(X, Y, name="tiny")
    monkeypatch.setattr(ablation, "load_dataset", lambda _: data)
    return data


@pytest.mark.slow
def test_all_steps_run_and_what_they_try_differs(tiny, monkeypatch):
    tried = {}
    fit = KernelEnsembleClassifier.fit

    def remembered(self, X, Y):
        fit(self, X, Y)
        table = self.search_results_
        tried[step] = {
            "widths": len(set(table["param_width_scale"])),
            "kernels": len(set(table["param_kernel"])),
            "views": len(set(table["param_view"])),
            "etas": len(set(table["param_eta"])),
            "virtual": bool((table["param_n_clusters"] > 0).any()),
            "members": len(self.members_),
            "slopes": bool(np.all(self._model.members[0].slope == 1)),
        }
        return self

    monkeypatch.setattr(KernelEnsembleClassifier, "fit", remembered)
    rows = []
    for step in ablation.STEPS:
        rows += ablation.measure(ablation.Run("tiny", 1, step))
        assert set(rows[-1]) == set(ablation.COLUMNS)
    found = list(tried.values())
    assert [f["widths"] for f in found] == [1] + [4] * 7
    assert [f["kernels"] for f in found] == [1] * 2 + [2] * 6
    assert [f["views"] for f in found] == [1] * 3 + [4] * 5
    assert [f["slopes"] for f in found] == [True] * 4 + [False] * 4
    assert [f["etas"] > 1 for f in found] == [False] * 5 + [True] * 3
    assert [f["members"] > 1 for f in found][:7] == [False] * 6 + [True]
    assert [f["virtual"] for f in found] == [False] * 7 + [True]
    table = ablation.mean_table(rows)
    assert "1 sets" in table
    assert all(f"| {step} |" in table for step in ablation.STEPS)


def row(data, split, step, value):
    metrics = dict.fromkeys(METRICS, value)
    rest = {"device": "cpu", "seconds": 1.0, "n_members": 1, "virtual_weight": 0.0}
    return {"data": data, "split": split, "step": step, **rest, **metrics}


def test_a_run_is_finished_when_it_has_its_row(tmp_path):
    file = tmp_path / "rows.csv"
    rows = [row("yeast", 0, "one kernel", 0.4), row("yeast", 0, "+ widths", 0.5)]
    _rows.add_rows(file, ablation.COLUMNS, rows)
    assert ablation.stored_rows(file) == rows
    assert ablation.finished(rows[:1]) == {("yeast", 0, "one kernel")}


def test_tables_use_the_splits_that_have_all_steps():
    rows = [row("yeast", 0, step, 0.1 * i) for i, step in enumerate(ablation.STEPS)]
    rows += [row("yeast", 1, "one kernel", 9.0)]
    found = ablation.complete(rows)
    np.testing.assert_allclose(found["yeast"][:, 0], 0.1 * np.arange(8))
    table = ablation.mean_table(rows)
    line = next(line for line in table.splitlines() if line.startswith("| + widths"))
    assert "0.1000 (+0.1000; 1 : 0)" in line  # average precision
    assert "0.1000 (+0.1000; 0 : 1)" in line  # the losses
    assert ablation.data_table(rows, "average_precision").count("\n") == 2


def test_which_steps_help_by_their_intervals():
    gains = [0.01, 0.012, 0.014]  # of one step, on three sets; the others change nothing
    rows = [
        row(data, 0, step, 0.5 + (gain if i >= 2 else 0.0))
        for data, gain in zip(("yeast", "scene", "image"), gains, strict=True)
        for i, step in enumerate(ablation.STEPS)
    ]
    mean, half = np.mean(gains), 4.302653 * np.std(gains, ddof=1) / 3**0.5
    assert f"| + kernels | **{-mean:+.4f} ± {half:.4f}** |" in ablation.interval_table(rows)
    assert f"**{mean:+.4f} ± {half:.4f}** |" in ablation.interval_table(rows)
    text = " ".join(ablation.what_helps(rows).split())
    assert "*+ kernels* is better by average precision" in text
    assert "*+ kernels* is worse by one error, hamming loss, ranking loss, coverage" in text
    assert text.endswith("*+ virtual examples* that cannot be said.")


def test_the_page_is_made_from_the_committed_rows(tmp_path):
    rows = ablation.stored_rows(RESULTS / "ablation.csv")
    page = (DOCS / "ensemble.md").read_text("utf-8")
    assert rows
    # python -m imcc_paper.ablation -o results/ablation.csv --print --page docs/ensemble.md
    assert ablation.with_rows(page, rows) == page
    with pytest.raises(ValueError, match="marks"):
        ablation.with_rows("no marks", rows)
    other = tmp_path / "page.md"
    other.write_text(page.replace("| + views | ", "| + views | 9"), "utf-8")
    with pytest.raises(SystemExit, match=r"is not what ablation\.csv gives"):
        ablation.update_page(RESULTS / "ablation.csv", other, check=True)
    ablation.update_page(RESULTS / "ablation.csv", other)
    assert other.read_text("utf-8") == page


def test_no_run_is_begun_after_the_time(tmp_path, capsys):
    file = tmp_path / "rows.csv"
    assert ablation.main(["-o", str(file), "--data", "yeast", "--for", "-1"]) == 0
    assert not file.exists()
    assert "no split" in capsys.readouterr().out
