"""The script behind the ensemble's numbers measures what it says."""

import numpy as np

from benchmarks import ensemble, ensemble_stages
from benchmarks._measured import Measurements
from imcc._ensemble.held_out import Labels, Ridge
from imcc._ensemble.model import distances, make_kernel
from imcc._ensemble.spectrum import Spectrum
from imcc._ensemble.views import fit_view


def test_the_gap_of_a_given_width_is_that_of_views_and_widths_only(small_problem):
    """Without coupling only view and width see the left-out row: the scores hardly change."""
    X, Y, *_ = small_problem
    X, Y = X[:40], Y[:40]
    Y = Y[:, np.ptp(Y, axis=0) > 0]
    signs = 2.0 * (Y > 0) - 1
    exact = ensemble.leave_out_all(X, signs, 0.0, "raw", "rbf")
    rows = fit_view("raw", X).transform(X)
    kernel, base = make_kernel("rbf"), distances("rbf", rows)
    K = kernel.finish(base, kernel.mean_distance(base))
    ours = Ridge(Spectrum.of_kernel(K), Labels.of(signs)).leave_one_out(1.0)
    assert 0 < np.abs(ours - exact).mean() < 0.01
    coupled = ensemble.leave_out_all(X, signs, 0.7, "raw", "rbf")
    assert np.abs(coupled - exact).max() > 0.01


def test_progress_is_read_from_what_a_fit_reports(small_problem):
    X, Y, *_ = small_problem
    model = ensemble.KernelEnsembleClassifier(
        views=("raw",), width_scales=(1.0,), virtual_examples=False, random_state=0
    )
    lines, (clock, cores) = ensemble.progress_lines(model, X[:50], Y[:50])
    shares = [share for share, _, _ in lines]
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert 0 < lines[0][1] < lines[-1][1] <= clock
    assert 0 < lines[-1][2] <= cores


def test_a_fit_is_timed(small_problem):
    X, Y, *_ = small_problem
    model = ensemble.KernelEnsembleClassifier(
        views=("raw",), width_scales=(1.0,), virtual_examples=False, random_state=0
    )
    clock, cores = ensemble.timed(model, X[:50], Y[:50])
    assert clock > 0
    assert cores > 0
    assert model.members_


def test_the_numbers_of_the_page_are_measured_and_written(
    small_problem, tmp_path, monkeypatch, capsys
):
    """Each option that the page shows numbers of, on few rows; then the sentences of the page."""
    X, Y, *_ = small_problem
    full = ensemble.KernelEnsembleClassifier

    def small(**parameters):
        return full(
            views=("raw",),
            kernels=("rbf",),
            width_scales=(1.0,),
            coupling=(0.0,),
            virtual_examples=False,
            **parameters,
        )

    Y = np.column_stack([Y[:30], np.arange(30) == 3])
    monkeypatch.setattr(ensemble, "split", lambda *_: (X[:30], Y, X[30:40], Y[:10]))
    monkeypatch.setattr(ensemble, "KernelEnsembleClassifier", small)
    monkeypatch.setattr(ensemble_stages, "KernelEnsembleClassifier", small)
    file = tmp_path / "rows.csv"
    for options in (
        ["--gap", "--data", "medical"],
        ["--many-rows", "100"],
        ["--progress", "--data", "a", "b"],
        ["--stages", "--data", "a"],
    ):
        monkeypatch.setattr("sys.argv", ["ensemble", *options, "--csv", str(file)])
        ensemble.main()
    capsys.readouterr()
    found = Measurements.read(file)
    assert found.parts() == ["gap", "100 rows", "progress", "stages, host"]
    assert found.cases("gap") == [f"medical, eta {eta}" for eta in ensemble.ETAS]
    assert found.of("gap", "medical, eta 0.0")["labels_with_1_to_3"] > 0
    assert found.cases("progress") == ["a, 10%", "a, 50%", "b, 10%", "b, 50%", "a, b"]
    assert found.of("progress", "a, b")["largest_factor"] >= 1
    assert found.of("stages, host", "a")["features"] == X.shape[1]
    device = Measurements(device="NVIDIA H200 (PyTorch 2.11)")
    device.add("stages, cuda", "a", rows=40, features=5, labels=3, seconds=1.26)
    device.save(file)
    found = Measurements.read(file)
    for rows in (100_000, 40_000):
        found.add(f"{rows} rows", "100 features, 10 labels", seconds=rows / 1000, gib=1)
    blocks = ensemble.blocks(found)
    fit = "On an NVIDIA H200, a fit takes 1.3 s on a (40 rows, 5 features, 3 labels)"
    assert blocks["ensemble-fit"] == fit
    assert blocks["ensemble-gap"].startswith("30 rows of medical, ")
    assert blocks["ensemble-progress"].startswith("a and b, the estimate was right")
    assert blocks["ensemble-many-rows"] == (
        "100,000 rows with 100 features and 10 labels took 100 s and 1.0 GiB in addition to the "
        "data, 40,000 rows 40 s and 1.0 GiB"
    )
