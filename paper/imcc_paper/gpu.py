"""Results, time and memory on a GPU; run it where there is one.

    python -m imcc_paper.gpu --csv results/gpu.csv    check against the CPU, measure, and keep the
                                               numbers; python -m imcc_paper.reproduce writes them
                                               into docs/gpu.md
    python -m imcc_paper.gpu --only check      only the comparison with the CPU
    python -m imcc_paper.gpu --only stream     ten million rows that stream through the GPU; a quick
                                               look without one: --device cpu --stream-rows 20000
                                               --components 200

Times are wall clock from NumPy arrays to NumPy arrays, transfers included: the median of five runs
after one to warm up.  The data sets come from ``IMCC_DATA_MIRROR``.  The exit code is 1 if a result
differs from that of the CPU.
"""

from __future__ import annotations

import importlib
import os
import platform
import statistics
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.model_selection import KFold

from imcc import IMCCClassifier, IMCCClassifierCV
from imcc.metrics import METRICS
from imcc_paper import _measured
from imcc_paper._measured import Measurements, seconds
from imcc_paper.scale import N_CLUSTERS, N_FEATURES, N_LABELS, make_rows

ROUNDS = 5
CHUNK_ROWS = 100_000  # of the stream
FIT_ROWS = 40_000  # of the single fit
FIT_CLUSTERS = 256  # of it
WHAT = ["check", "memory", "arts", "bibtex", "cpu", "fit", "stream"]
SAME = 1e-8  # relative, in float64
CHECK_ROWS = 50_000  # of the stream
# The middle of the paper's grid and its corners that are hardest on the arithmetic.
SETTINGS = [
    {"alpha": 1.0, "beta": 1.0, "gamma": 0.1},
    {"alpha": 1e3, "beta": 1e-3, "gamma": 1e3},
    {"alpha": 1e3, "beta": 1e-3, "gamma": 1e-3},
    {"alpha": 1e-3, "beta": 1e3, "gamma": 1e3},
]


def load(name: str, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first rows and labels of a data set."""
    X, Y = _measured.dense_rows(name)
    return X[:rows], Y[:rows]


def made_up(rows: int, features: int, labels: int) -> tuple[np.ndarray, np.ndarray]:
    """Return random rows, and labels that depend on them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, features))
    outputs = X @ rng.normal(size=(features, labels)) + rng.normal(size=(rows, labels))
    return X, outputs > 0.8 * np.sqrt(features)


def check_fits(X: np.ndarray, Y: np.ndarray, device: str) -> list[str]:
    """Compare the scores of single fits, the clusters being the same."""
    lines = []
    for kernel in ("rbf", "laplacian", "linear"):
        for solver in ("auto", "spectral"):
            worst = 0.0
            for setting in SETTINGS:
                clf = IMCCClassifier(
                    64, **setting, kernel=kernel, solver=solver, clusterer=KMeans(n_init=1)
                ).set_params(random_state=0)
                expected = clf.fit(X[:-500], Y[:-500]).decision_function(X[-500:])
                clf.set_params(device=device).fit(X[:-500], Y[:-500])
                found = clf.decision_function(X[-500:])
                worst = max(worst, float(np.abs(found - expected).max() / np.abs(expected).max()))
            lines.append(_verdict(f"scores, {kernel}, solver={solver!r}", worst))
    return lines


def check_search(X: np.ndarray, Y: np.ndarray, device: str, n_clusters: Any) -> list[str]:
    """Compare the five metrics of every weight of the paper's grid, the clusters being the same."""
    common = {
        "n_clusters": n_clusters,
        "grid": "paper",
        "cv": KFold(3),
        "scoring": list(METRICS),
        "refit": False,
        "clusterer": KMeans(n_init=1),
        "random_state": 0,
    }
    expected, found = (
        IMCCClassifierCV(**common, device=d).fit(X, Y).cv_results_ for d in (None, device)
    )
    lines = []
    for name in METRICS:
        a, b = (results[f"mean_test_{name}"] for results in (expected, found))
        lines.append(_verdict(f"{name} of {len(a)} settings", float(np.max(np.abs(a - b) / a))))
    return lines


def check_arrays(X: np.ndarray, Y: np.ndarray, device: str) -> list[str]:
    """Put arrays of each library that is installed in, and see that such arrays come out."""
    lines = []
    clf = IMCCClassifier(64, clusterer=KMeans(n_init=1), random_state=0)
    expected = clf.fit(X[:-500], Y[:-500]).decision_function(X[-500:])
    for library in ("torch", "cupy"):
        try:
            xp = importlib.import_module(library)
        except ModuleNotFoundError:
            lines.append(f"| {library} is not installed | | |")
            continue
        rows = xp.asarray(X, **({"device": device} if library == "torch" else {}))
        scores = clf.fit(rows[:-500], Y[:-500]).decision_function(rows[-500:])
        assert type(scores) is type(rows)
        assert scores.device == rows.device
        difference = np.abs(on_host(scores) - expected).max() / np.abs(expected).max()
        lines.append(_verdict(f"scores, arrays of {library} in and out", float(difference)))
    return lines


def on_host(values: Any) -> np.ndarray:
    """Return an array of torch or CuPy as a NumPy array."""
    return values.get() if hasattr(values, "get") else values.cpu().numpy()


def _verdict(what: str, difference: float) -> str:
    return f"| {what} | {difference:.1e} | {'same' if difference <= SAME else 'NOT THE SAME'} |"


def timed(call: Callable[[], object], device: str) -> dict[str, float]:
    """Return the median time of some calls after one to warm up, and the peak of device memory."""
    reset_peak(device)
    call()
    median = statistics.median(seconds(call) for _ in range(ROUNDS))
    return {"seconds": median, "peak_gib": peak_gib(device)}


def describe_device(device: str) -> str:
    import torch

    kind, cuda = platform.processor() or "CPU", ""
    if device.startswith("cuda"):
        kind, cuda = torch.cuda.get_device_name(device), f", CUDA {torch.version.cuda}"
    return f"{kind} (PyTorch {torch.__version__.partition('+')[0]}{cuda})"


def peak_gib(device: str) -> float:
    import torch

    return torch.cuda.max_memory_allocated(device) / 2**30 if device.startswith("cuda") else 0.0


def reset_peak(device: str) -> None:
    import torch

    if device.startswith("cuda"):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)


def add_memory(rows: int, device: str, found: Measurements) -> None:
    """Measure what fits and a search hold at most, in matrices of float64 as large as K."""
    X, Y = made_up(rows, 20, 3)
    for solver in ("auto", "spectral"):
        reset_peak(device)
        IMCCClassifier(8, solver=solver, device=device, random_state=0).fit(X, Y)
        found.add("memory", solver, matrices=_matrices(device, rows), rows=rows)
    reset_peak(device)
    one = {"alphas": 1.0, "betas": 1.0, "gammas": 0.1, "n_clusters": (8,), "refit": False}
    one["width_scales"] = 1.0
    IMCCClassifierCV(**one, cv=KFold(4), device=device, random_state=0).fit(X, Y)
    # Beside the matrix of all rows, those of the training rows of a fold.
    of_fold = (_matrices(device, rows) - 1) / (3 / 4) ** 2
    found.add("memory", "search", matrices=of_fold, rows=rows)


def _matrices(device: str, rows: int) -> float:
    return peak_gib(device) * 2**30 / (8 * rows**2)


def time_table(found: Measurements) -> str:
    """Lay out the searches and the fit."""
    rows = []
    for part in ("arts", "bibtex", "fit", "stream"):
        for case in found.cases(part):
            values = found.of(part, case)
            size = f"{values['rows']:.0f} rows x {values.get('labels', 0):.0f} labels"
            what = {
                "arts": f"full paper grid (2058 settings x 5 folds) and refit, arts, {size}",
                "bibtex": f"the same, bibtex, {size}",
                "fit": f"one exact rbf fit, {values['rows']:,.0f} x 100, "
                f"{values.get('labels', 0):.0f} labels, {FIT_CLUSTERS} clusters",
                "stream": f"a stream of {values['rows']:,.0f} x {N_FEATURES} from host memory, "
                f"{N_LABELS} labels, {N_CLUSTERS} clusters, Nyström with "
                f"{values.get('components', 0):,.0f} components",
            }[part]
            rows.append([what, f"{values['seconds']:.1f} s", f"{values['peak_gib']:.1f} GiB"])
    return _measured.table(["what", "time", "peak device memory"], rows)


def memory_table(found: Measurements) -> str:
    """Lay out how many matrices of n x n numbers a fit and a search need."""
    auto, spectral, search = (found.of("memory", case) for case in ("auto", "spectral", "search"))
    return _measured.table(
        ["what", f"n x n matrices, n = {auto['rows']:,.0f}"],
        [
            ['one fit, `solver="auto"` or `"cholesky"`', f"{auto['matrices']:.1f}"],
            ['one fit, `solver="spectral"`', f"{spectral['matrices']:.1f}"],
            ["the exact search, k folds", f"1 + {search['matrices']:.1f} (1 - 1/k)²"],
        ],
    )


Chunks = list[tuple[np.ndarray, np.ndarray]]


def made_chunks(rows: int, chunk_rows: int) -> Chunks:
    """Make rows in clumps with labels that depend on them, by all cores."""

    def make(start: int) -> tuple[np.ndarray, np.ndarray]:
        X, Y = make_rows(start // chunk_rows, min(chunk_rows, rows - start))
        return X, Y.view(bool)

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        return list(threads.map(make, range(0, rows, chunk_rows)))


def stream_classifier(n_components: int, device: str | None) -> IMCCClassifier:
    return IMCCClassifier(
        N_CLUSTERS,
        approximation="nystroem",
        n_components=n_components,
        random_state=0,
        device=device,
    )


def check_stream(chunks: Chunks, n_components: int, device: str) -> list[str]:
    """Compare a fit on the first rows, in ten chunks, with that on the CPU."""
    taken = -(-CHECK_ROWS // len(chunks[0][0]))
    X, Y = (np.concatenate(parts)[:CHECK_ROWS] for parts in zip(*chunks[:taken], strict=True))
    step = -(-len(X) // 10)
    cut = [(X[i : i + step], Y[i : i + step]) for i in range(0, len(X), step)]
    host, there = (stream_classifier(n_components, d).fit(cut) for d in (None, device))
    pairs = {
        f"stream, {name}": (getattr(there, name), getattr(host, name))
        for name in ("landmarks_", "cluster_centers_", "soft_labels_")
    }
    scores = [clf.decision_function(X[:5000]) for clf in (there, host)]
    pairs[f"stream of {len(X)} rows, scores"] = (scores[0], scores[1])
    return [
        _verdict(name, float(np.abs(a - b).max() / np.abs(b).max()))
        for name, (a, b) in pairs.items()
    ]


def blocks(found: Measurements) -> dict[str, str]:
    """Return the marked block of docs/gpu.md."""
    cpu = found.of("cpu", "arts")
    return {
        "gpu": "\n\n".join(
            (
                f"On an {found.where('arts', 'device')}:",
                time_table(found),
                f"The first line took {cpu['seconds']:.0f} s on the {cpu['cores']:.0f} CPU cores "
                "of the same machine (one run).",
                memory_table(found),
            )
        )
    }


def main() -> int:
    """Read the command line, check and measure."""
    parser = _measured.make_parser(__doc__, "gpu")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--only", nargs="*", default=WHAT, choices=WHAT)
    parser.add_argument("--stream-rows", type=int, default=10_000_000)
    parser.add_argument("--components", type=int, default=2000, help="of the stream's fit")
    options = parser.parse_args()
    device = options.device
    found = Measurements(device=describe_device(device))
    print(describe_device(device) + "\n", flush=True)
    lines: list[str] = []
    if "check" in options.only:
        X, Y = load("arts", 2000)
        lines = check_fits(X, Y, device) + check_search(X, Y, device, (8, 64))
        lines += check_arrays(X, Y, device)
    if "memory" in options.only:
        add_memory(FIT_ROWS // 2, device, found)
    for name, rows in (("arts", 4000), ("bibtex", 5916)):
        if name in options.only:
            X, Y = load(name, rows)
            search = IMCCClassifierCV(grid="paper", random_state=0, device=device)
            values = timed(lambda s=search, x=X, y=Y: s.fit(x, y), device)
            found.add(name, "search", **values, rows=len(X), labels=Y.shape[1])
    if "cpu" in options.only:
        X, Y = load("arts", 4000)
        took = seconds(lambda: IMCCClassifierCV(grid="paper", random_state=0).fit(X, Y))
        found.add("cpu", "arts", seconds=took, cores=os.cpu_count() or 0)
    if "fit" in options.only:
        X, Y = made_up(FIT_ROWS, 100, 20)
        clf = IMCCClassifier(FIT_CLUSTERS, random_state=0, device=device)
        values = timed(lambda: clf.fit(X, Y), device)
        found.add("fit", "rbf", **values, rows=len(X), labels=Y.shape[1])
    if "stream" in options.only:
        chunks = made_chunks(options.stream_rows, CHUNK_ROWS)
        lines += check_stream(chunks, options.components, device)
        clf = stream_classifier(options.components, device)
        values = timed(lambda: clf.fit(chunks), device)
        size = {"rows": options.stream_rows, "components": options.components}
        found.add("stream", "nystroem", **values, **size)
    print("| against the CPU | largest relative difference | |\n| --- | --- | --- |")
    print("\n".join(lines) + "\n\n" + time_table(found))
    if "memory" in options.only:
        print("\n" + memory_table(found))
    found.save(options.csv)
    return int(any("NOT" in line for line in lines))


if __name__ == "__main__":
    sys.exit(main())
