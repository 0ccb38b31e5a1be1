"""The comparison with other libraries runs what an environment has, and the page shows its rows."""

import numpy as np
import pytest

from imcc_paper import other_libraries


def test_a_method_is_run_on_the_rows_of_a_file(tmp_path):
    rng = np.random.default_rng(0)
    X, X_test = rng.normal(size=(60, 4)), rng.normal(size=(20, 4))
    Y = (X[:, :3] > 0).astype(int)
    np.savez(tmp_path / "rows.npz", X=X, Y=Y, X_test=X_test)
    available = other_libraries.available()
    assert {
        "imcc KernelEnsembleClassifier",
        "imcc TunedThresholds(KernelEnsemble)",
        "imcc IMCCClassifier",
        "scikit-learn RandomForestClassifier",
    } <= set(available)
    for method in ("imcc IMCCClassifier", "scikit-learn RandomForestClassifier"):
        other_libraries.run(tmp_path / "rows.npz", method)
        out = np.load(tmp_path / "rows.out.npz")
        assert out["scores"].shape == out["predicted"].shape == (20, 3)
        assert (out["predicted"] == (X_test[:, :3] > 0)).mean() > 0.8
        # The scores rank the labels of a row: those that it has are above those that it lacks.
        on = X_test[:, :3] > 0
        assert out["scores"][on].mean() > out["scores"][~on].mean() + 0.3
        assert out["seconds"].min() >= 0


def row(data, method, split, value, error=""):
    numbers = dict.fromkeys(
        ("average_precision", "hamming_loss", "macro_f1", "fit_seconds", "predict_seconds"),
        "" if error else str(value),
    )
    names = {"data": data, "split": str(split), "method": method, "library": "x 1"}
    return {**names, **numbers, "error": error}


def test_tables_have_means_the_best_in_bold_and_what_failed():
    rows = [
        row("emotions", "scikit-learn A", 0, 0.2),
        row("emotions", "scikit-learn A", 1, 0.4),
        row("emotions", "imcc B", 0, 0.5),
        row("emotions", "imcc B", 1, 0.6),
        row("birds", "scikit-learn A", 0, "", "more than 300 s"),
        row("birds", "imcc B", 0, "", "ValueError: no"),
        row("birds", "libmultilabel C", 0, 0.25),
    ]
    precision, loss, _, seconds = other_libraries.tables(rows).split("**\n\n| | ")[1:]
    assert precision.splitlines()[0] == "emotions | birds |"
    assert "| imcc `B` | **0.550** | failed |" in precision
    assert "| libmultilabel `C` | not run | **0.250** |" in precision
    assert "| scikit-learn `A` | 0.300 | too slow |" in precision
    assert precision.index("imcc") < precision.index("libmultilabel") < precision.index("scikit")
    assert "| scikit-learn `A` | **0.300** | too slow |" in loss
    assert "| scikit-learn `A` | 0.3 | too slow |" in seconds


def test_the_page_shows_the_committed_rows():
    rows = other_libraries.read()
    assert {row["data"] for row in rows} == set(other_libraries.DATA)
    assert all(row["error"] or 0 < float(row["average_precision"]) < 1 for row in rows)
    page = other_libraries.PAGE.read_text("utf-8")
    begin, end = other_libraries.BEGIN, other_libraries.END
    shown = page.partition(begin)[2].partition(end)[0]
    assert shown.strip() == other_libraries.tables(rows).strip()
    numbers = {row["library"] for row in rows}
    assert len(numbers) == 5  # one version of each library
    named = " ".join(page.split())
    assert all(number in named for number in numbers if not number.startswith("imcc "))


def test_what_the_page_says_about_the_best_is_so():
    found = {}
    for row in other_libraries.read():
        if not row["error"]:
            found.setdefault((row["data"], row["method"]), []).append(row)

    def mean(data, method, key):
        return np.mean([float(row[key]) for row in found[data, method]])

    methods = {method for _, method in found}
    for data in other_libraries.DATA:
        others = methods - {"imcc KernelEnsembleClassifier", "imcc TunedThresholds(KernelEnsemble)"}
        others = {method for method in others if (data, method) in found}
        for key, sign in (("average_precision", 1), ("hamming_loss", -1)):
            ours = sign * mean(data, "imcc KernelEnsembleClassifier", key)
            assert ours > max(sign * mean(data, method, key) for method in others), (data, key)
        ours = mean(data, "imcc KernelEnsembleClassifier", "fit_seconds")
        logistic = mean(data, "scikit-learn OneVsRest(LogisticRegression)", "fit_seconds")
        assert 14 <= round(ours / logistic) <= 130
        boomer = "mlrl-boomer BoomerClassifier"
        assert 0.085 < mean(data, boomer, "fit_seconds") / ours < 0.91
        rest = [mean(data, method, "average_precision") for method in others]
        second = mean(data, boomer, "average_precision") == max(rest)
        assert second == (data in ("birds", "scene", "enron"))
        f1 = {m: mean(data, m, "macro_f1") for m in methods if (data, m) in found}
        better = {m for m, value in f1.items() if value > f1["imcc KernelEnsembleClassifier"]}
        assert max(f1, key=f1.get) == "imcc TunedThresholds(KernelEnsemble)"
        better.discard("imcc TunedThresholds(KernelEnsemble)")
        if data == "enron":
            assert len(better) > len(f1) / 2
        else:
            assert better == ({"scikit-learn MLPClassifier"} if data == "yeast" else set())


def test_a_page_without_marks_is_an_error(tmp_path):
    (tmp_path / "page.md").write_text("nothing")
    with pytest.raises(ValueError, match="no lines"):
        other_libraries.write_page([], tmp_path / "page.md")
