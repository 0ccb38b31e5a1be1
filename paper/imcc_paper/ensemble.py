"""The ensemble: its cost beside the paper's search, its memory, and its quality.

    python -m benchmarks.ensemble                        time on arts and yeast, both sides
    python -m benchmarks.ensemble --stages --device cuda --data arts bibtex    where the time goes
    python -m benchmarks.ensemble --progress --data arts yeast   the time left, and what it was
    python -m benchmarks.ensemble --memory               peak memory, in matrices of n x n
    python -m benchmarks.ensemble --quality --data yeast scene --splits 2
    python -m benchmarks.ensemble --gap --data medical   what leave-one-out does not recompute
    python -m benchmarks.ensemble --picture docs/images/members.png      the members on cal500
    python -m benchmarks.ensemble --many-rows 100000     so many rows x 100 features, 10 labels

Quality is measured on development splits (seeds from 1000 on), which no experiment uses: the
recipe was chosen on them.  What is reported comes from experiments with ``kernel_ensemble``, whose
splits are those of :func:`imcc.datasets.paper_splits`.

``--csv results/ensemble.csv`` also writes the numbers to a file; ``python -m benchmarks.reproduce``
writes some of them into docs/ensemble.md.

The data sets are found through ``IMCC_DATA_MIRROR`` or downloaded; see :mod:`imcc.datasets`.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import time
import tracemalloc
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, train_test_split
from threadpoolctl import threadpool_limits

from benchmarks import _measured
from benchmarks._measured import Measurements
from benchmarks.ensemble_stages import report_stages
from benchmarks.gpu import describe_device
from imcc import IMCCClassifierCV, KernelEnsembleClassifier
from imcc._core.logistic import fit_logistic_maps
from imcc._ensemble.held_out import Labels, Ridge
from imcc._ensemble.model import distances, make_kernel
from imcc._ensemble.spectrum import Spectrum
from imcc._ensemble.views import fit_view
from imcc.baselines import KernelRidgeBaseline
from imcc.datasets import load_dataset
from imcc.inspection import draw_members
from imcc.metrics import METRICS, evaluate

ETAS = (0.0, 0.2, 0.7)  # couplings whose leave-one-out scores are computed anew
FIRST_SEED = 1000  # experiments count their repetitions from 0


def split(name: str, number: int) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """Return training and test rows of a development split."""
    data = load_dataset(name)
    train, test = train_test_split(
        np.arange(data.n_rows), test_size=0.2, random_state=FIRST_SEED + number
    )
    return data.X[train], data.Y[train], data.X[test], data.Y[test]


def timed(model: Any, X: Any, Y: np.ndarray, device: str | None = None) -> tuple[float, float]:
    """Return the seconds of a fit: by the clock, and of the processor's cores together."""
    if device is not None:
        model.set_params(device=device)
    start, worked = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, Y)
    return time.perf_counter() - start, time.process_time() - worked


def compare_cost(
    names: list[str], threads: int, device: str | None, measured: Measurements
) -> None:
    """Print seconds of the paper's search and of the ensemble on the same rows.

    On a machine that is used by others too, those of the cores say more than those of the clock.
    """
    print("data        rows  paper search (cores)     ensemble (cores)   ratio (cores)")
    for name in names:
        X, Y, _, _ = split(name, 0)
        with threadpool_limits(threads):
            paper = timed(IMCCClassifierCV(grid="paper", random_state=0), X, Y, device)
            ours = timed(KernelEnsembleClassifier(random_state=0), X, Y, device)
            for model, (clock, cores) in (("paper search", paper), ("ensemble", ours)):
                measured.add("cost", f"{name}: {model}", seconds=clock, cpu_seconds=cores)
        columns = [f"{name:8s} {X.shape[0]:7d}"]
        columns += [f"{clock:9.1f} s ({cores:7.1f} s)" for clock, cores in (paper, ours)]
        columns += [f"{ours[0] / paper[0]:7.2f} ({ours[1] / paper[1]:5.2f})"]
        print(" ".join(columns), flush=True)


def progress_lines(model: Any, X: Any, Y: np.ndarray) -> tuple[list[tuple[float, ...]], np.ndarray]:
    """Fit a model; return (share done, clock, cores) at each report, and both at the end."""
    begin = np.array([time.perf_counter(), time.process_time()])
    found: list[tuple[float, ...]] = []

    class Lines(io.StringIO):
        def write(self, text: str) -> int:
            if match := re.search(r"(\d+) % done", text):
                used = np.array([time.perf_counter(), time.process_time()]) - begin
                found.append((int(match[1]) / 100, *used))
            return len(text)

    with contextlib.redirect_stderr(Lines()), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.set_params(verbose=1).fit(X, Y)
    return found, np.array([time.perf_counter(), time.process_time()]) - begin


def report_progress(
    names: list[str], threads: int, device: str | None, measured: Measurements
) -> None:
    """Print how long a fit was to take after the first tenth, and how long it took.

    A machine that is used by others is now slower, now faster; the seconds of the cores say whether
    the parts are weighted right.
    """
    factors = []
    print("data       at   to take (cores)         took (cores)        ratio (cores)")
    for name in names:
        X, Y, _, _ = split(name, 0)
        with threadpool_limits(threads):
            lines, took = progress_lines(
                KernelEnsembleClassifier(random_state=0, device=device), X, Y
            )
        for least in (0.1, 0.5):
            share, *used = next(line for line in lines if line[0] >= least)
            clock, cores = np.array(used) / share
            ratios = np.array([clock, cores]) / took
            print(
                f"{name:8s} {100 * share:3.0f} % {clock:7.1f} s ({cores:7.1f} s) "
                f"{took[0]:7.1f} s ({took[1]:7.1f} s) {ratios[0]:7.2f} ({ratios[1]:5.2f})",
                flush=True,
            )
            case, seconds = f"{name}, {least:.0%}", {"to_take": cores, "took": took[1]}
            measured.add("progress", case, share=share, **seconds)
            if least == 0.1:
                factors.append(max(ratios[1], 1 / ratios[1]))
    measured.add("progress", ", ".join(names), largest_factor=max(factors))


def report_memory(names: list[str], measured: Measurements) -> None:
    """Print the peak of what NumPy and SciPy allocate, in matrices of n x n doubles."""
    for name in names:
        X, Y, _, _ = split(name, 0)
        tracemalloc.start()
        KernelEnsembleClassifier(random_state=0).fit(X, Y)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        n = X.shape[0]
        measured.add("memory", name, rows=n, matrices=peak / (8 * n * n))
        print(f"{name}: {n} rows, peak {peak / 2**20:.0f} MiB = {peak / (8 * n * n):.1f} n x n")


def calibrated_ridge(X: Any, Y: np.ndarray, X_new: Any, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores of kernel ridge, and those calibrated on folds of the training rows."""
    folds = KFold(5, shuffle=True, random_state=seed)
    ridge = KernelRidgeBaseline(cv=folds).fit(X, Y)
    held_out = np.empty(Y.shape)
    for train, test in folds.split(X):
        model = ridge.estimator_for(ridge.search_.best_params_).fit(X[train], Y[train])
        held_out[test] = model.decision_function(X[test])
    scores = ridge.decision_function(X_new)
    return scores, fit_logistic_maps(held_out, Y > 0).log_odds(scores)


def compare_quality(names: list[str], n_splits: int, measured: Measurements) -> None:
    """Print the metrics of kernel ridge, calibrated kernel ridge and the ensemble."""
    print(f"{'data':10s} {'model':24s} " + " ".join(f"{metric:>17s}" for metric in METRICS))
    totals: dict[str, list[np.ndarray]] = {}
    for name in names:
        found: dict[str, list[list[float]]] = {}
        for number in range(n_splits):
            X, Y, X_new, Y_new = split(name, number)
            ridge, calibrated = calibrated_ridge(X, Y, X_new, number)
            ensemble = KernelEnsembleClassifier(random_state=number).fit(X, Y)
            for model, scores in (
                ("kernel ridge", ridge),
                ("kernel ridge, calibrated", calibrated),
                ("ensemble", ensemble.decision_function(X_new)),
            ):
                found.setdefault(model, []).append(list(evaluate(Y_new, scores).values()))
        for model, rows in found.items():
            means = np.mean(rows, axis=0)
            totals.setdefault(model, []).append(means)
            numbers = dict(zip(METRICS, means, strict=True))
            measured.add("quality", f"{name}: {model}", splits=n_splits, **numbers)
            print(f"{name:10s} {model:24s} " + " ".join(f"{v:17.4f}" for v in means), flush=True)
    for model, rows in totals.items():
        means = np.mean(rows, axis=0)
        print(f"{'mean':10s} {model:24s} " + " ".join(f"{v:17.4f}" for v in means))


def leave_out_all(X: Any, signs: np.ndarray, eta: float, view: str, name: str) -> np.ndarray:
    """Return the scores of each row by a model of which everything is computed without it."""
    out, n = np.empty_like(signs), X.shape[0]
    for i in range(n):
        rest = np.delete(np.arange(n), i)
        out[i] = held_out_row(X[rest], signs[rest], X[i : i + 1], eta, view, name)
    return out


def held_out_row(
    X: Any, signs: np.ndarray, row: Any, eta: float, view: str, name: str
) -> np.ndarray:
    """Fit view, width, label correlations and model on rows, and score another one."""
    varies = np.ptp(signs, axis=0) > 0
    scores = signs[0].copy()  # of the labels that are constant without the row
    seen = fit_view(view, X)
    rows, new = seen.transform(X), seen.transform(row)
    kernel, base = make_kernel(name), distances(name, rows)
    width = kernel.mean_distance(base)
    labels = Labels.of(signs[:, varies])
    ridge = Ridge(Spectrum.of_kernel(kernel.finish(base, width)), labels)
    coef, intercept = ridge.coefficients(1.0, eta)
    scores[varies] = (kernel.finish(distances(name, new, rows), width) @ coef + intercept)[0]
    return scores


def report_gap(
    names: list[str], measured: Measurements, n: int = 300, view: str = "raw", name: str = "rbf"
) -> None:
    """Print how leave-one-out scores change when views, widths and correlations are recomputed."""
    for data in names:
        X, Y, _, _ = split(data, 0)
        X, Y = X[:n], Y[:n]
        Y = Y[:, np.ptp(Y, axis=0) > 0]
        signs, counts = 2.0 * (Y > 0) - 1, (Y > 0).sum(axis=0)
        rows = fit_view(view, X).transform(X)
        kernel, base = make_kernel(name), distances(name, rows)
        K = kernel.finish(base, kernel.mean_distance(base))
        ridge = Ridge(Spectrum.of_kernel(K), Labels.of(signs))
        print(f"{data}: {X.shape[0]} rows, {view} {name}, penalty 1")
        for eta in ETAS:
            ours = ridge.leave_one_out(1.0, eta)
            exact = leave_out_all(X, signs, eta, view, name)
            apart = np.abs(ours - exact)
            numbers: dict[str, float] = {"rows": X.shape[0]}
            for least, most in ((1, 3), (4, 10), (11, 30), (31, n)):
                some = (counts >= least) & (counts <= most)
                if some.any():
                    positive = apart[:, some][(Y > 0)[:, some]]
                    numbers[f"labels_with_{least}_to_{most}"] = positive.mean()
                    print(
                        f"  eta {eta:3.1f}, labels with {least:2d} to {most:3d} rows: mean "
                        f"{apart[:, some].mean():.5f}, of positive rows {positive.mean():.5f}"
                    )
            means = [evaluate(Y, scores)["average_precision"] for scores in (ours, exact)]
            print(f"  eta {eta:3.1f}, average precision {means[0]:.4f}, recomputed {means[1]:.4f}")
            numbers["average_precision"] = abs(means[0] - means[1])
            measured.add("gap", f"{data}, eta {eta}", **numbers)


def many_rows(n: int, threads: int, measured: Measurements, d: int = 100, q: int = 10) -> None:
    """Print time and memory for many rows, where Nyström features take over."""
    import resource  # not on Windows

    random = np.random.RandomState(0)
    X = random.standard_normal((n, d))
    hidden = np.tanh(X @ random.standard_normal((d, 30)) / np.sqrt(d))
    Y = hidden @ random.standard_normal((30, q)) + 0.5 * random.standard_normal((n, q)) > 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = KernelEnsembleClassifier(random_state=0)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with threadpool_limits(threads):
            clock, cores = timed(model, X, Y.astype(int))
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**20
    print(
        f"{n} rows x {d}, {q} labels: {clock:.0f} s, of the cores {cores:.0f} s; peak memory "
        f"{grown:.2f} GiB more than the data; {model.n_landmarks_} landmarks, "
        f"{len(model.members_)} members, average precision {model.cross_fitted_score_:.3f}"
    )
    # A part of its own: the largest memory of a process says nothing about its second fit.
    numbers = {"seconds": clock, "cpu_seconds": cores, "gib": grown}
    with threadpool_limits(threads):
        measured.add(f"{n} rows", f"{d} features, {q} labels", **numbers)


def draw_picture(path: str, name: str = "cal500") -> None:
    """Draw the members of the ensemble of a development split."""
    X, Y, _, _ = split(name, 0)
    model = KernelEnsembleClassifier(random_state=0).fit(X, Y)
    print(draw_members(model, path))


def blocks(found: Measurements) -> dict[str, str]:
    """Return the marked blocks of docs/ensemble.md."""
    device = found.where("stages, cuda", "device").partition(" (")[0]
    fits = []
    for name in found.cases("stages, cuda"):
        of = found.of("stages, cuda", name)
        size = ", ".join(f"{of[what]:.0f} {what}" for what in ("rows", "features", "labels"))
        fits.append(f"{of['seconds']:.1f} s on {name} ({size})")
    gaps = {eta: found.of("gap", f"medical, eta {eta}") for eta in ETAS}
    rare = [
        np.format_float_positional(of["labels_with_1_to_3"], 2, fractional=False, trim="-")
        for of in gaps.values()
    ]
    precision = [f"{of['average_precision']:.4f}" for of in gaps.values()]
    many = []
    for n in (100_000, 40_000):
        (case,) = found.cases(f"{n} rows")
        of = found.of(f"{n} rows", case)
        where = "" if many else f" with {case.replace(',', ' and')} took"
        more = "" if many else " in addition to the data"
        cost = f"{of['seconds']:.0f} s and {of['gib']:.1f} GiB"
        many.append(f"{n:,} rows{where} {cost}{more}")
    names = found.cases("progress")[-1]  # all of them, after each
    factor = found.of("progress", names)["largest_factor"]
    rows = gaps[0.0]["rows"]
    return {
        "ensemble-fit": f"On an {device}, a fit takes {' and '.join(fits)}",
        "ensemble-gap": f"{rows:.0f} rows of medical, scores of positive rows of labels with "
        f"one to three rows change by {_in_turn(rare)}, average precision by "
        f"{_in_turn(precision)}, with η = {_in_turn(f'{eta:g}' for eta in ETAS)}",
        "ensemble-many-rows": ", ".join(many),
        "ensemble-progress": f"{_in_turn(names.split(', '))}, the estimate was right to within "
        f"a factor of {factor:.1f}",
    }


def _in_turn(texts: Iterable[str]) -> str:
    *first, last = texts
    return f"{', '.join(first)} and {last}"


def main() -> None:
    """Read the command line and print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", nargs="+", default=["arts", "yeast"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", help="compute there, for the cost only")
    parser.add_argument("--stages", action="store_true")
    parser.add_argument("--progress", action="store_true")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--quality", action="store_true")
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--gap", action="store_true")
    parser.add_argument("--picture", metavar="FILE")
    parser.add_argument("--many-rows", type=int, metavar="N")
    _measured.add_csv_option(parser, "ensemble")
    asked = parser.parse_args()
    found = Measurements(device=describe_device(asked.device) if asked.device else "")
    if asked.stages:
        with threadpool_limits(asked.threads):
            for name in asked.data:
                X, Y, _, _ = split(name, 0)
                report_stages(name, X, Y, asked.device, found)
    elif asked.progress:
        report_progress(asked.data, asked.threads, asked.device, found)
    elif asked.memory:
        report_memory(asked.data, found)
    elif asked.quality:
        compare_quality(asked.data, asked.splits, found)
    elif asked.gap:
        report_gap(asked.data, found)
    elif asked.picture:
        draw_picture(asked.picture)
    elif asked.many_rows:
        many_rows(asked.many_rows, asked.threads, found)
    else:
        compare_cost(asked.data, asked.threads, asked.device, found)
    if asked.csv:
        found.save(asked.csv)


if __name__ == "__main__":
    main()
