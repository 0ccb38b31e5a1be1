"""Does clustering help?  The weights of the virtual examples at zero against searched.

    python -m benchmarks.clustering -o results/clustering.csv --device cuda --jobs 4 --for 330
    python -m benchmarks.clustering -o rows.csv --data genbase yeast --splits 1 --percents 5 10
    python -m benchmarks.clustering -o rows.csv --widths searched      four widths instead of one
    python -m benchmarks.clustering -o rows.csv --print                what is in the file

For each data set (the paper's fifteen and the five outside it), split and part of the training
rows, these variants are searched on the same folds, with the same kernel (rbf), widths and betas:

==================  ======  ======  ==========================================================
variant             alpha   gamma   virtual examples
==================  ======  ======  ==========================================================
``none``            0       0       none: kernel ridge regression
``kmeans``          paper   paper   clusters by k-means: IMCC, the paper's grid
``kmeans_alpha``    paper   0       the same, the virtual examples' loss alone
``kmeans_gamma``    0       paper   the same, the pull towards the centres alone
``kmeans_or_none``  both    both    the same, and the search may set either weight to zero
``random``          paper   paper   random clusters: the clusters of k-means with their rows
                                    permuted, so of the same sizes
``random_alpha``    paper   0       the same, the virtual examples' loss alone
``random_gamma``    0       paper   the same, the pull towards the centres alone
``shuffled``        paper   paper   clusters and centres of k-means; each has the soft label of
                                    another cluster (a random permutation without fixed points)
``shuffled_alpha``  paper   0       the same, the virtual examples' loss alone
==================  ======  ======  ==========================================================

"paper" is 1e-3, 1e-2, ..., 1e3, as for beta in all variants; the numbers of clusters are 8, 16,
..., 256, and in a fold with fewer rows as many as there are.  The width is the paper's, the mean
distance; with ``--widths searched`` 1/4, 1/2, 1 and 2 times that are tried in all variants.

Splits are the repetitions 0, 1, 2, ... of :func:`imcc.datasets.paper_splits`.  No choice of this
study was made on them.  Of the training rows (80 % of all), 5, 10, 20, 50 and 100 % are used: the
first of one random order, so that each part contains the smaller ones; parts of less than
``MIN_ROWS`` rows are left out.  The test rows are the same for all parts.  Settings are chosen by
average precision on five shuffled folds of these training rows, ties in favour of the first as in
:class:`imcc.IMCCClassifierCV`, then fitted on all of them and judged on the test rows by the five
metrics.  k-means sees the training rows of a fold only, and so does the permutation.

One eigendecomposition for each fold and width serves all variants: the numbers are those of
``IMCCClassifierCV(grid="paper")`` (see the test), for about twice its time.

What it takes: all 20 data sets x 3 splits x 5 parts are 294 runs.  On one H200, shared by several
processes (``--jobs 4``: k-means is many small steps, for which the device waits for the host), a
run took 1 to 12 s, about 5 s in the mean, and genbase up to 510 s, since many of its rows are equal
and k-means on the device then fills empty clusters again and again.  ``--widths searched`` takes
about three times as long (an estimate).  On one core of a CPU, 5 and 10 % of the rows of a small
data set take 3 to 30 s of CPU, and all rows minutes (genbase) to hours (bibtex; an estimate).
Runs are ordered by width, then
split, then the part of the rows, so that a budget (``--for SECONDS``, after which no run is begun)
leaves whole splits; a finished run is added to the file at once, and what is in the file is not
run again.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from imcc._search.judges import judge_of
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

from benchmarks import _rows
from imcc._backend.array import asarray, submatrix, take_rows
from imcc._backend.device import device_name, on_device
from imcc._core.clustering import assign_rows, virtual_examples
from imcc._core.kernels import choose_width, resolve_kernel
from imcc._core.maps import KernelMap
from imcc._core.solver import SpectralProblem, kernel_problem
from imcc._search.fold import Shared
from imcc._search.folds import Fold
from imcc._search.grid import EigenProblem, Grid, score_grid
from imcc._search.labels import DistinctLabels
from imcc._search.results import rank_settings
from imcc._utils.validation import draw_seed
from imcc.datasets import dataset_info, list_datasets, load_dataset, paper_splits
from imcc.estimators.imcc_cv import PAPER_N_CLUSTERS, PAPER_WEIGHTS, WIDTH_SCALES
from imcc.metrics import METRICS

PERCENTS = (5, 10, 20, 50, 100)
WIDTHS: dict[str, tuple[float, ...]] = {"paper": (1.0,), "searched": WIDTH_SCALES}
N_FOLDS = 5
MIN_ROWS = 20
#: The values of each weight, those of the clusters: other ones make a quick test.
WEIGHTS: tuple[float, ...] = PAPER_WEIGHTS
N_CLUSTERS: tuple[int, ...] = PAPER_N_CLUSTERS


class Variant(NamedTuple):
    """What is searched: a family of virtual examples, and which values of alpha and gamma."""

    family: str
    alpha: str
    gamma: str


VARIANTS = {
    "none": Variant("kmeans", "zero", "zero"),
    "kmeans": Variant("kmeans", "paper", "paper"),
    "kmeans_alpha": Variant("kmeans", "paper", "zero"),
    "kmeans_gamma": Variant("kmeans", "zero", "paper"),
    "kmeans_or_none": Variant("kmeans", "both", "both"),
    "random": Variant("random", "paper", "paper"),
    "random_alpha": Variant("random", "paper", "zero"),
    "random_gamma": Variant("random", "zero", "paper"),
    "shuffled": Variant("shuffled", "paper", "paper"),
    "shuffled_alpha": Variant("shuffled", "paper", "zero"),
}
FAMILIES = ("kmeans", "random", "shuffled")


class Run(NamedTuple):
    """One part of the training rows of one split of one data set, with one choice of widths."""

    data: str
    split: int
    percent: int
    width: str


SETTING = ("alpha", "beta", "gamma", "n_clusters", "width_scale")
COLUMNS = (
    *("data", "split", "percent", "width", "variant", "n_train", "n_test", "n_labels"),
    *SETTING,
    "cv_score",
    *METRICS,
    *("seconds", "device"),
)
WHOLE = ("split", "percent", "n_train", "n_test", "n_labels", "n_clusters")
WORDS = ("data", "width", "variant", "device")


@cache  # 20 data sets are 1 GB, and each is wanted again for the next part
def rows_of(name: str) -> tuple[np.ndarray, np.ndarray, Any]:
    """Return the rows of a data set, dense, its labels, and itself."""
    data = load_dataset(name)
    X = data.X.toarray() if data.is_sparse else data.X
    return np.ascontiguousarray(X, dtype=np.float64), np.asarray(data.Y) > 0, data


def part_of(train: np.ndarray, percent: int, split: int) -> np.ndarray:
    """Return a part of the training rows, ascending: the first of a random order."""
    order = np.random.default_rng([split, 13]).permutation(len(train))
    return np.sort(train[order[: int(np.ceil(percent * len(train) / 100))]])


def n_rows_of(run: Run) -> int:
    """Return about how many training rows a run has."""
    n_rows = dataset_info(run.data).n_rows
    return int(np.ceil(run.percent * (n_rows - n_rows // 5) / 100))


class Clusters:
    """The clusters of the training rows of a fold: by k-means, and permuted.

    Parameters
    ----------
    rows : array of shape (n_samples, n_features)
        Where they are to be worked on.
    seed : int
    fold : int
        The number of the fold, for the permutations.
    """

    def __init__(self, rows: Any, seed: int, fold: int) -> None:
        self.rows = rows
        self.seed, self.fold = seed, fold
        self._found: dict[int, np.ndarray] = {}

    def assignment(self, family: str, count: int) -> np.ndarray:
        """Return the cluster of each row, shape (n_samples, 1)."""
        # More clusters than rows are as many as there are rows.
        asked = min(count, self.rows.shape[0])
        if asked not in self._found:
            self._found[asked] = assign_rows(self.rows, asked, None, self.seed)
        found = self._found[asked]
        return found[self._random(count).permutation(len(found))] if family == "random" else found

    def other_cluster(self, count: int, n_found: int) -> np.ndarray:
        """Return for each cluster another one, each once: one random cycle through all."""
        order = self._random(count, 1).permutation(n_found)
        others = np.empty(n_found, dtype=np.intp)
        others[order] = np.roll(order, 1)
        return others

    def _random(self, *numbers: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, self.fold, *numbers])


class Problem:
    """One fold in its eigenbasis, for one width.

    Parameters
    ----------
    share : Shared
        Of all rows, with the distances between them.
    fold : Fold
    clusters : Clusters
        Of the fold's training rows.
    width_scale : float
    """

    def __init__(self, share: Shared, fold: Fold, clusters: Clusters, width_scale: float) -> None:
        self.rows = take_rows(share.rows, fold.train)
        self.clusters = clusters
        self.kernel = share.kernel
        self.labels = DistinctLabels.of(share.signs[fold.train])
        self.signs = asarray(self.labels.signs, self.rows)
        inner = submatrix(share.base, fold.train, fold.train)
        self.width = choose_width(self.kernel, inner, "mean_distance", width_scale)
        self.map = KernelMap.fit(self.kernel.finish(inner, self.width))
        self.cross = self.map.train_sums(self.signs.T)
        outer = submatrix(share.base, fold.test, fold.train)
        self.held_out = self.map.transform(self.kernel.finish(outer, self.width))
        self.judge = judge_of(share.judged[fold.test], self.held_out)
        self._known: dict[tuple[str, int], SpectralProblem] = {}

    def with_clusters(self, family: str, count: int) -> SpectralProblem:
        """Return the problem with virtual examples of a family."""
        if (family, count) in self._known:
            return self._known[family, count]
        if family == "shuffled":
            # Only the soft labels in the loss of the virtual examples are other ones; the sums of
            # the rows' own labels stay.
            problem = self.with_clusters("kmeans", count)
            soft = problem.terms.soft_labels
            others = self.clusters.other_cluster(count, soft.shape[0])
            terms = replace(problem.terms, soft_labels=take_rows(soft, others))
            problem = replace(problem, terms=terms)
        else:
            assignment = self.clusters.assignment(family, count)
            virtual = virtual_examples(self.rows, self.signs, assignment)
            K_centers = self.kernel.base(virtual.centers, self.rows)
            K_centers = self.kernel.finish(K_centers, self.width)
            problem = kernel_problem(self.map, self.cross, K_centers, virtual)
        self._known[family, count] = problem
        return problem

    def scores(self, family: str, grid: Grid, metrics: Sequence[str]) -> np.ndarray:
        """Return (n_metrics, n_alphas, n_betas, n_gammas, n_clusterings) values."""
        problems = [self.with_clusters(family, count) for count in grid.n_clusters]
        fold = EigenProblem(problems, self.held_out, None, self.map.negative)
        values, finite, _ = score_grid(fold, self.judge, grid, metrics, self.labels)
        if not finite.all():
            raise ValueError(f"{int((~finite).sum())} settings have scores that are not finite")
        return values


def grid_of(family: str) -> Grid:
    """Return all values of a family; without alpha, shuffled soft labels are not there."""
    weights = np.array(WEIGHTS)
    or_zero = np.array([0.0, *WEIGHTS])
    alphas = weights if family == "shuffled" else or_zero
    return Grid(alphas, weights, or_zero, list(N_CLUSTERS))


def choose(variant: Variant, grid: Grid, folds: np.ndarray, scales: Sequence[float]) -> Any:
    """Return the setting of a variant with the best mean over folds, and that mean.

    Parameters
    ----------
    variant : Variant
    grid : Grid
        Of its family.
    folds : ndarray of shape (n_folds, n_alphas, n_betas, n_gammas, n_clusterings, n_scales)
        Average precision; NaN in a fold whose held-out rows have no ranking.
    scales : sequence of float
    """
    allowed: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "zero": lambda values: values == 0,
        "paper": lambda values: values > 0,
        "both": lambda values: values >= 0,
    }
    of_alpha = np.flatnonzero(allowed[variant.alpha](grid.alphas))
    of_gamma = np.flatnonzero(allowed[variant.gamma](grid.gammas))
    # Without virtual examples their number means nothing.
    n_counts = 1 if variant.alpha == variant.gamma == "zero" else len(grid.n_clusters)
    part = folds[:, of_alpha][:, :, :, of_gamma, :n_counts]
    defined = ~np.isnan(part).reshape(len(part), -1).all(axis=1)
    means = part[defined].mean(axis=0)
    best = int(np.argsort(rank_settings(means.ravel(), True), kind="stable")[0])
    a, b, c, k, w = np.unravel_index(best, means.shape)
    values = (
        float(grid.alphas[of_alpha[a]]),
        float(grid.betas[b]),
        float(grid.gammas[of_gamma[c]]),
        int(grid.n_clusters[k]),
        float(scales[w]),
    )
    return dict(zip(SETTING, values, strict=True)), float(means[a, b, c, k, w])


def measure(run: Run, device: str | None = None) -> list[dict[str, Any]]:
    """Return the rows of a run, one for each variant."""
    start = time.perf_counter()
    with threadpool_limits(1), warnings.catch_warnings():
        # Few rows make fewer clusters than asked for.
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = searched(run, device)
    seconds = time.perf_counter() - start
    where = "cpu" if device is None else device_name(device)
    return [row | {"seconds": round(seconds, 2), "device": where} for row in found]


def searched(run: Run, device: str | None = None) -> list[dict[str, Any]]:
    """Search all variants on the same folds, and judge what they choose on the test rows."""
    X, relevant, data = rows_of(run.data)
    train, test = paper_splits(data, run.split + 1)[run.split]
    train = part_of(train, run.percent, run.split)
    # From here on, rows are counted among these: first those for training, then those for testing.
    used = np.concatenate([train, test])
    rows, relevant = on_device(X[used], device), relevant[used]
    signs = np.where(relevant, 1.0, -1.0)
    final = Fold(np.arange(len(train)), np.arange(len(train), len(used)))
    splitter = KFold(N_FOLDS, shuffle=True, random_state=run.split)
    folds = [Fold(*parts) for parts in splitter.split(final.train)]
    share = Shared.of(rows, signs, relevant, resolve_kernel("rbf"), [*folds, final])
    scales, seed = WIDTHS[run.width], draw_seed(run.split)

    values: dict[str, list[list[np.ndarray]]] = {family: [] for family in FAMILIES}
    for k, fold in enumerate(folds):
        clusters = Clusters(take_rows(rows, fold.train), seed, k)
        of_scales: dict[str, list[np.ndarray]] = {family: [] for family in FAMILIES}
        for scale in scales:
            problem = Problem(share, fold, clusters, scale)
            for family in FAMILIES:
                table = problem.scores(family, grid_of(family), ["average_precision"])
                of_scales[family].append(table[0])
        for family in FAMILIES:
            values[family].append(of_scales[family])
    tables = {family: np.moveaxis(np.array(values[family]), 1, -1) for family in FAMILIES}

    chosen = {
        name: choose(variant, grid_of(variant.family), tables[variant.family], scales)
        for name, variant in VARIANTS.items()
    }
    clusters = Clusters(take_rows(rows, final.train), seed, N_FOLDS)
    problems: dict[float, Problem] = {}
    found = []
    for name, (setting, score) in chosen.items():
        scale = setting["width_scale"]
        if scale not in problems:
            problems[scale] = Problem(share, final, clusters, scale)
        alpha, beta, gamma = (np.array([setting[part]]) for part in SETTING[:3])
        one = Grid(alpha, beta, gamma, [setting["n_clusters"]])
        judged = problems[scale].scores(VARIANTS[name].family, one, list(METRICS)).ravel()
        found.append(
            {
                **run._asdict(),
                "variant": name,
                "n_train": len(train),
                "n_test": len(test),
                "n_labels": relevant.shape[1],
                **setting,
                "cv_score": score,
                **dict(zip(METRICS, judged.tolist(), strict=True)),
            }
        )
    return found


def stored_rows(path: Path) -> list[dict[str, Any]]:
    """Return the complete rows of a file."""
    return _rows.read_rows(path, WORDS, WHOLE)


def run_of(row: Mapping[str, Any]) -> Run:
    """Return the run that a row belongs to."""
    return Run(*(row[name] for name in Run._fields))


def finished(rows: Iterable[Mapping[str, Any]]) -> set[Run]:
    """Return the runs that have the rows of all variants."""
    return _rows.finished(rows, run_of, "variant", VARIANTS)


def run_all(
    runs: Sequence[Run], path: Path, jobs: int, device: str | None, budget: float = np.inf
) -> int:
    """Compute what is not in the file yet, until the time is over; return how many runs failed."""
    done = finished(stored_rows(path))
    return _rows.run_all(
        measure,
        [_rows.Queue([run for run in runs if run not in done], jobs, device)],
        lambda rows: _rows.add_rows(path, COLUMNS, rows),
        name=lambda run: f"{run.data}, split {run.split}, {run.percent} %, width {run.width}",
        outcome=_in_words,
        seconds=budget,
    )


def _in_words(rows: Sequence[Mapping[str, Any]]) -> str:
    found = {row["variant"]: row["average_precision"] for row in rows}
    return (
        f"average precision {found['none']:.4f} -> {found['kmeans']:.4f} in "
        f"{rows[0]['seconds']:.1f} s"
    )


def plan(
    data: Sequence[str], n_splits: int, percents: Sequence[int], widths: Sequence[str]
) -> list[Run]:
    """Return the runs, whole splits first; parts with too few rows are left out."""
    runs = [
        Run(name, split, percent, width)
        for width in widths
        for split in range(n_splits)
        for percent in sorted(percents)
        for name in data
    ]
    return [run for run in runs if n_rows_of(run) >= MIN_ROWS]


def summary(rows: Sequence[Mapping[str, Any]], width: str = "paper") -> str:
    """Return, for each part of the rows, the mean differences to ``none``, as Markdown."""
    whole = finished(rows)
    kept = [row for row in rows if row["width"] == width and run_of(row) in whole]
    lines = [
        "| average precision less that of none | " + " | ".join(list(VARIANTS)[1:]) + " |",
        "| --- |" + " --- |" * (len(VARIANTS) - 1),
    ]
    for percent in sorted({row["percent"] for row in kept}):
        by_set: dict[str, dict[str, list[float]]] = {}
        for row in kept:
            if row["percent"] == percent:
                of_set = by_set.setdefault(row["data"], {})
                of_set.setdefault(row["variant"], []).append(row["average_precision"])
        cells = []
        for variant in list(VARIANTS)[1:]:
            gains = [np.mean(found[variant]) - np.mean(found["none"]) for found in by_set.values()]
            cells.append(f"{np.mean(gains):+.4f}")
        lines.append(f"| {percent} %, {len(by_set)} data sets | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line, compute what is missing and print a summary."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, required=True, help="CSV file of the rows")
    parser.add_argument("--data", nargs="+", help="data sets (the paper's fifteen and five more)")
    parser.add_argument("--splits", type=int, default=3, help="splits of each data set (3)")
    parser.add_argument("--percents", type=int, nargs="+", default=list(PERCENTS))
    parser.add_argument("--widths", nargs="+", choices=list(WIDTHS), default=["paper"])
    parser.add_argument("--jobs", type=int, default=1, help="processes (1: this one)")
    parser.add_argument("--device", help="where to compute: cuda")
    parser.add_argument("--for", type=float, default=np.inf, dest="budget", metavar="SECONDS")
    parser.add_argument("--print", action="store_true", help="compute nothing")
    asked = parser.parse_args(arguments)
    failures = 0
    if not asked.print:
        data = asked.data or [*list_datasets("paper"), *list_datasets("outside")]
        runs = plan(data, asked.splits, asked.percents, asked.widths)
        failures = run_all(runs, asked.output, asked.jobs, asked.device, asked.budget)
    rows = stored_rows(asked.output)
    for width in WIDTHS:
        if any(row["width"] == width for row in rows):
            print(f"width {width}\n\n{summary(rows, width)}\n")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
