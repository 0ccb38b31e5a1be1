"""The script behind the ensemble's numbers measures what it says."""

from imcc_paper import ensemble


def small(**parameters):
    return ENSEMBLE(views=("raw",), **parameters)


ENSEMBLE = ensemble.KernelEnsembleClassifier


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
