"""The script behind the ensemble's numbers measures what it says."""

from imcc_paper import ensemble
from imcc_paper._measured import Measurements


def small(**parameters):
    return ENSEMBLE(
        views=("raw",),
        kernels=("rbf",),
        width_scales=(1.0,),
        coupling=(0.0,),
        virtual_examples=False,
        **parameters,
    )


ENSEMBLE = ensemble.KernelEnsembleClassifier


def test_the_numbers_of_the_page_are_measured_and_written(tmp_path, monkeypatch):
    monkeypatch.setattr(ensemble, "KernelEnsembleClassifier", small)
    file = tmp_path / "rows.csv"
    monkeypatch.setattr("sys.argv", ["ensemble", "--many-rows", "100", "--csv", str(file)])
    ensemble.main()
    found = Measurements.read(file)
    (case,) = found.cases("100 rows")
    assert found.of("100 rows", case)["cpu_seconds"] > 0
    found.add("40000 rows", case, cpu_seconds=40, gib=1)
    assert ensemble.blocks(found)["ensemble-many-rows"] == (
        "40,000 rows with 100 features and 10 labels took 40 CPU seconds and 1.0 GiB in addition "
        "to the data"
    )


def test_quality_is_that_of_the_models(small_problem, monkeypatch, capsys):
    X, Y, X_new, Y_new = small_problem
    monkeypatch.setattr(ensemble, "KernelEnsembleClassifier", small)
    monkeypatch.setattr(ensemble, "split", lambda *_: (X, Y, X_new, Y_new))
    ensemble.compare_quality(["made-up"], 1)
    lines = capsys.readouterr().out.splitlines()
    model = small(random_state=0).fit(X, Y)
    expected = ensemble.evaluate(Y_new, model.decision_function(X_new))["average_precision"]
    assert lines[3].split()[:2] == ["made-up", "ensemble"]
    assert lines[3].split()[-1] == f"{expected:.4f}"
