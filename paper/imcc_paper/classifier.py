"""Speed and memory of the classifier and of the exact search, as ratios measured side by side.

    make bench                                                  print the tables
    python -m imcc_paper.classifier --csv results/speed.csv     those of docs/performance.md
    python -m imcc_paper.classifier --rows 1000 --sample 4      a quick look

``python -m imcc_paper.reproduce`` makes the tables of the page from the file.

Real data (arts, 4000 training rows) when ``IMCC_DATA_MIRROR`` names a folder with the paper's
files, otherwise made-up data of the same shape.  Both sides of a ratio use the same rows and the
same number of threads, and take turns.
"""

from __future__ import annotations

import os
import statistics
import warnings
from collections.abc import Callable

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.cluster import KMeans
from sklearn.datasets import make_multilabel_classification
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

from imcc import IMCCClassifier, IMCCClassifierCV
from imcc.estimators import EdgeOfGridWarning
from imcc.metrics import evaluate
from imcc_paper import _measured
from imcc_paper._measured import Measurements, in_own_process, memory, seconds

N_CLUSTERS = 64  # of the single fits
ROUNDS = 5
GROWTH = (500, 1000, 2000, 4000)


def load(rows: int) -> tuple[str, np.ndarray, np.ndarray]:
    """Return the name, rows and labels (0/1) of the data to measure on."""
    if os.environ.get("IMCC_DATA_MIRROR"):
        X, Y = _measured.dense_rows("arts")
        return "arts", X[:rows], Y[:rows]
    X, Y = make_multilabel_classification(
        rows, n_features=462, n_classes=26, n_labels=2, length=35, random_state=0
    )
    return "made-up data", X.astype(np.float64), Y


def from_scratch(X, Y, X_new, Y_new, n_clusters, alpha, beta, gamma) -> float:
    """One setting as the authors' program does it: k-means, kernel, the n x n system of Eq. 20."""
    signs = np.where(Y, 1.0, -1.0)
    labels = KMeans(n_clusters, n_init=1, random_state=0).fit(X).labels_
    clusters, labels = np.unique(labels, return_inverse=True)
    Z = np.array([X[labels == j].mean(axis=0) for j in range(len(clusters))])
    T = np.array([signs[labels == j].mean(axis=0) for j in range(len(clusters))])
    scale = 1 / (2 * pdist(X).mean() ** 2)
    K, K_centers, K_new = (rbf_kernel(A, X, gamma=scale) for A in (X, Z, X_new))
    difference = K - K_centers[labels]
    total = len(X) + alpha * len(Z)
    ones = K.sum(axis=0) + alpha * K_centers.sum(axis=0)
    left = K.T @ K + alpha * K_centers.T @ K_centers + beta * K
    left += gamma * difference.T @ difference - np.outer(ones, ones) / total
    left[np.diag_indices_from(left)] += 1e-10
    totals = signs.sum(axis=0) + alpha * T.sum(axis=0)
    right = K.T @ signs + alpha * K_centers.T @ T - np.outer(ones, totals) / total
    A = np.linalg.solve(left, right)
    b = (totals - (K @ A).sum(axis=0) - alpha * (K_centers @ A).sum(axis=0)) / total
    return evaluate(Y_new, K_new @ A + b, ["average_precision"])["average_precision"]


def side_by_side(ours: Callable[[], object], theirs: Callable[[], object]) -> tuple[float, float]:
    """Return the median times of two calls that take turns, after one of each to warm up."""
    ours()
    theirs()
    times = [(seconds(ours), seconds(theirs)) for _ in range(ROUNDS)]
    return statistics.median(a for a, _ in times), statistics.median(b for _, b in times)


def bench_search(X: np.ndarray, Y: np.ndarray, sample: int) -> dict[str, float]:
    """Time the search, and some of its settings from scratch."""
    search = IMCCClassifierCV(grid="paper", cv=5, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EdgeOfGridWarning)
        ours = seconds(lambda: search.fit(X, Y))
    settings = search.cv_results_["params"]
    train, test = next(KFold(5).split(X))
    # As many settings of each n_clusters, the weights at random.
    rng = np.random.default_rng(0)
    counts = sorted({setting["n_clusters"] for setting in settings})
    picked = [
        rng.choice(
            [i for i, s in enumerate(settings) if s["n_clusters"] == counts[k % len(counts)]]
        )
        for k in range(sample)
    ]
    each = []
    for i in picked:
        setting = {k: settings[i][k] for k in ("n_clusters", "alpha", "beta", "gamma")}
        parts = X[train], Y[train], X[test], Y[test]
        each.append(seconds(lambda p=parts, s=setting: from_scratch(*p, **s)))
    return {
        "settings": len(settings),
        "seconds": ours,
        "from_scratch_seconds": statistics.mean(each),
        "sample": sample,
    }


def bench_grids(X: np.ndarray, Y: np.ndarray, found: Measurements) -> None:
    """Time the default grid, and what probabilities cost, against the paper's grid."""
    searches = {
        "paper": IMCCClassifierCV(grid="paper", cv=5, random_state=0),
        "calibrated": IMCCClassifierCV(grid="paper", calibrate=True, cv=5, random_state=0),
        "default": IMCCClassifierCV(cv=5, random_state=0),
    }
    times: dict[str, list[float]] = {name: [] for name in searches}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EdgeOfGridWarning)
        # In turns, so that what slows down the machine slows down all of them.
        for name in ("paper", "calibrated", "default", "calibrated", "paper"):
            times[name].append(seconds(lambda search=searches[name]: search.fit(X, Y)))
    for name, search in searches.items():
        settings = len(search.cv_results_["params"])
        found.add("grids", name, seconds=statistics.mean(times[name]), settings=settings)


def bench_fit(X: np.ndarray, Y: np.ndarray, found: Measurements) -> None:
    """Time fits and scores beside scikit-learn's kernel ridge regression."""
    signs = np.where(Y, 1.0, -1.0)
    clf = IMCCClassifier(N_CLUSTERS, random_state=0).fit(X, Y)
    ridge = KernelRidge(alpha=1.0, kernel="rbf", gamma=1 / (2 * clf.width_**2)).fit(X, signs)
    ours, theirs = side_by_side(lambda: clf.fit(X, Y), lambda: ridge.fit(X, signs))
    found.add("fit", "rbf", seconds=ours, kernel_ridge_seconds=theirs)
    X_new = X[:1000] + 0.01
    ours, theirs = side_by_side(lambda: clf.decision_function(X_new), lambda: ridge.predict(X_new))
    found.add("predict", len(X_new), seconds=ours, kernel_ridge_seconds=theirs)


def bench_metrics(found: Measurements) -> None:
    """Time all five metrics on a table of corel5k's size, with sparse and with crowded labels."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(1000, 374))
    for density in (0.01, 0.5):
        truth = rng.random(scores.shape) < density
        time = statistics.median(seconds(lambda t=truth: evaluate(t, scores)) for _ in range(9))
        found.add("metrics", density, seconds=time)


def peak_of_fit(rows: int) -> float:
    """Return the peak memory of one rbf fit above the input, in n x n float64 matrices."""
    _, X, Y = load(rows)
    clf = IMCCClassifier(N_CLUSTERS, random_state=0)
    clf.fit(X[:200], Y[:200])  # imports and thread pools
    before = memory("VmHWM")
    clf.fit(X, Y)
    return (memory("VmHWM") - before) / (8 * len(X) ** 2)


def bench_growth(X: np.ndarray, Y: np.ndarray, found: Measurements) -> None:
    """Time fits and searches of more and more rows."""
    for n in [n for n in GROWTH if n <= len(X)]:
        rows, labels = X[:n], Y[:n]
        clf = IMCCClassifier(N_CLUSTERS, random_state=0)
        fit = statistics.median(
            seconds(lambda c=clf, r=rows, y=labels: c.fit(r, y)) for _ in range(3)
        )
        full = IMCCClassifierCV(grid="paper", random_state=0)
        search = seconds(lambda c=full, r=rows, y=labels: c.fit(r, y))
        found.add("growth", n, fit_seconds=fit, search_seconds=search)


def times_faster(found: Measurements) -> float:
    """Return how many times faster the search is than fitting each setting in each fold."""
    search = found.of("search", "paper")
    return search["from_scratch_seconds"] * search["settings"] * 5 / search["seconds"]


def speed_table(found: Measurements) -> str:
    """Lay out everything but the growth."""
    search = found.of("search", "paper")
    n_fits, each = 5 * search["settings"], search["from_scratch_seconds"]
    rows = [
        [
            f"full paper grid x 5 folds ({search['settings']:.0f} settings)",
            f"{search['seconds']:.1f} s",
            f"each setting from scratch: {each:.2f} s x {n_fits:.0f} = {n_fits * each / 3600:.1f} "
            f"h (extrapolated from {search['sample']:.0f} settings)",
            f"{times_faster(found):.0f} times faster",
            ">= 400 times",
        ]
    ]
    if found.cases("grids"):
        paper, default, calibrated = (
            found.of("grids", case) for case in ("paper", "default", "calibrated")
        )
        before = paper["seconds"]
        rows += [
            [
                f"default grid x 5 folds ({default['settings']:.0f} settings, 4 widths)",
                f"{default['seconds']:.1f} s",
                f"paper's grid: {before:.1f} s",
                f"{default['seconds'] / before:.2f} times its time",
                "",
            ],
            [
                "paper's grid with `calibrate=True`",
                f"{calibrated['seconds']:.1f} s",
                f"without: {before:.1f} s",
                f"{100 * (calibrated['seconds'] / before - 1):.0f} % more",
                "<= 10 %",
            ],
        ]
    fit, (n_new,) = found.of("fit", "rbf"), found.cases("predict")
    predict = found.of("predict", n_new)
    sparse, crowded = (1e3 * found.of("metrics", d)["seconds"] for d in (0.01, 0.5))
    return _measured.table(
        ["what", "imcc", "against", "ratio", "target"],
        [
            *rows,
            [
                f"one `fit`, rbf, {N_CLUSTERS} clusters",
                f"{fit['seconds']:.2f} s",
                f"KernelRidge.fit: {fit['kernel_ridge_seconds']:.2f} s",
                f"{fit['seconds'] / fit['kernel_ridge_seconds']:.2f} times its time",
                "<= 2.5 times",
            ],
            [
                f"`decision_function`, {n_new} rows",
                f"{1e3 * predict['seconds']:.0f} ms",
                f"KernelRidge.predict: {1e3 * predict['kernel_ridge_seconds']:.0f} ms",
                f"{predict['seconds'] / predict['kernel_ridge_seconds']:.2f} times its time",
                "<= 1.2 times",
            ],
            [
                "all five metrics, 1000 x 374, 1 % and 50 % of the labels on",
                f"{sparse:.0f} ms and {crowded:.0f} ms",
                "",
                "",
                "< 100 ms",
            ],
            [
                "peak memory of one rbf `fit` above the input",
                f"{found.of('memory', 'rbf')['matrices']:.1f} n x n",
                "",
                "",
                "<= 3",
            ],
        ],
    )


def growth_table(found: Measurements) -> str:
    """Lay out time against rows, with the exponents of the steps."""
    lines: list[list[str]] = []
    before: tuple[int, float, float] | None = None
    for n in map(int, found.cases("growth")):
        values = found.of("growth", n)
        fit, search = values["fit_seconds"], values["search_seconds"]
        grown = ["", ""]
        if before:
            step = np.log(n / before[0])
            grown = [
                f"{np.log(now / old) / step:.1f}"
                for now, old in ((fit, before[1]), (search, before[2]))
            ]
        lines.append([str(n), f"{fit:.2f} s", grown[0], f"{search:.1f} s", grown[1]])
        before = (n, fit, search)
    return _measured.table(["rows", "`fit`", "exponent", "search", "exponent"], lines)


def blocks(found: Measurements) -> dict[str, str]:
    """Return the marked blocks of docs/performance.md, and the number of the front pages."""
    (name,) = found.cases("data")
    size = found.of("data", name)
    cores, threads = (found.where("data", column) for column in ("cores", "threads"))
    machine = (
        f"Measured on {cores} cores, {name}: {size['rows']:.0f} training rows, "
        f"{size['features']:.0f} features, {size['labels']:.0f} labels; {threads} threads:"
    )
    return {
        "speed": f"{machine}\n\n{speed_table(found)}",
        "growth": growth_table(found),
        "times-faster": f"{times_faster(found):.0f} times (extrapolated from a loop over "
        f"{found.of('search', 'paper')['sample']:.0f} settings)",
    }


def main() -> None:
    parser = _measured.make_parser(__doc__, "speed")
    parser.add_argument("--rows", type=int, default=4000, help="training rows (default 4000)")
    parser.add_argument("--sample", type=int, default=12, help="settings timed from scratch")
    parser.add_argument(
        "--threads", type=int, default=os.cpu_count(), help="threads for both sides"
    )
    parser.add_argument("--no-growth", action="store_true", help="leave out time against rows")
    options = parser.parse_args()
    name, X, Y = load(options.rows)
    found = Measurements()
    with threadpool_limits(options.threads):
        found.add("data", name, rows=len(X), features=X.shape[1], labels=Y.shape[1])
        found.add("search", "paper", **bench_search(X, Y, options.sample))
        bench_grids(X, Y, found)
        bench_fit(X, Y, found)
        bench_metrics(found)
        found.add("memory", "rbf", matrices=in_own_process(peak_of_fit, len(X)))
        if not options.no_growth:
            bench_growth(X, Y, found)
    shown = blocks(found)
    print(f"{shown['speed']}\n\n{shown['growth']}")
    found.save(options.csv)


if __name__ == "__main__":
    main()
