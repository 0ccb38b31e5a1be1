"""The comparison with other libraries runs what an environment has, and the page shows its rows."""

import numpy as np

from imcc_paper import other_libraries
from imcc_paper.places import DOCS


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


def test_the_table_has_means_the_best_in_bold_and_nothing_that_failed():
    rows = [
        row("emotions", "scikit-learn A", 0, 0.2),
        row("emotions", "scikit-learn A", 1, 0.4),
        row("emotions", "imcc B", 0, 0.5),
        row("emotions", "imcc B", 1, 0.6),
        row("birds", "scikit-learn A", 0, 0.1),
        row("birds", "imcc B", 0, 0.05),
        row("emotions", "libmultilabel C", 0, 0.9),
        row("birds", "libmultilabel C", 0, "", "ValueError: no"),
    ]
    header, _, ours, theirs = other_libraries.page_table(rows).splitlines()
    assert header == "|  | emotions | birds | Hamming loss | macro F1 | CPU seconds |"
    assert ours == "| imcc `B` | **0.550** | 0.050 | 0.300 | **0.300** | 0.6 |"
    assert theirs == "| scikit-learn `A` | 0.300 | **0.100** | **0.200** | 0.200 | 0.4 |"


def test_the_page_names_the_versions():
    versions = {row["library"] for row in other_libraries.read()}
    assert len(versions) == 5  # one of each library
    page = " ".join((DOCS / "compared_with.md").read_text("utf-8").split())
    assert all(name in page for name in versions if not name.startswith("imcc "))


def test_what_the_page_says_about_the_best_is_so():
    found = {}
    for row in other_libraries.read():
        if not row["error"]:
            found.setdefault((row["data"], row["method"]), []).append(row)

    def mean(data, method, key):
        return np.mean([float(row[key]) for row in found[data, method]])

    ensemble, boomer = "imcc KernelEnsembleClassifier", "mlrl-boomer BoomerClassifier"
    tuned = "imcc TunedThresholds(KernelEnsemble)"
    logistic = "scikit-learn OneVsRest(LogisticRegression)"
    for data in other_libraries.DATA:
        methods = {method for name, method in found if name == data}
        others = methods - {ensemble, tuned}
        precision = {method: mean(data, method, "average_precision") for method in others}
        assert mean(data, ensemble, "average_precision") > max(precision.values())
        second = max(precision, key=precision.get)
        assert (second == boomer) == (data in ("birds", "scene", "enron"))
        ours = mean(data, ensemble, "fit_seconds")
        assert mean(data, logistic, "fit_seconds") < 0.3 * ours
        assert (mean(data, boomer, "fit_seconds") < ours) == (data == "enron")
    others = {method for name, method in found if name == "enron"} - {ensemble, tuned}
    f1 = {method: mean("enron", method, "macro_f1") for method in others}
    assert np.mean([v > mean("enron", ensemble, "macro_f1") for v in f1.values()]) > 0.5
