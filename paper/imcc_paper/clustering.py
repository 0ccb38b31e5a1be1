"""Does clustering help?  The weights of the virtual examples at zero against searched.

    python -m imcc_paper.clustering -o results/clustering.csv --device cuda --jobs 4 --for 330
    python -m imcc_paper.clustering -o rows.csv --data genbase yeast --splits 1 --percents 5 10

For each data set (the paper's fifteen and the five outside it), split and part of the training
rows, these variants are searched on the same folds, with the same kernel (rbf), width and betas:

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
==================  ======  ======  ==========================================================

"paper" is 1e-3, 1e-2, ..., 1e3; beta is 1e-5, 1e-4, ..., 1e5 in all variants, wider than the
paper's, since a large alpha acts as a smaller beta: at the edge of beta's values, virtual examples
would gain what they only allow.  The numbers of clusters are 8, 16, ..., 256, and in a fold with
fewer rows as many as there are.  The width is the paper's, the mean distance.  The columns of
birds, emotions and flags, which have very different ranges, are standardized by the training rows
of each run.

Splits are the repetitions 0, 1, 2, ... of :func:`imcc.datasets.paper_splits`.  No choice of this
study was made on them.  Of the training rows (80 % of all), 5, 10, 20, 50 and 100 % are used: the
first of one random order, so that each part contains the smaller ones; parts of less than
``MIN_ROWS`` rows are left out.  The test rows are the same for all parts.  Two searches
(:class:`imcc.IMCCClassifierCV`), one with each kind of clusters, cross-validate all settings on
five shuffled folds of these training rows; each variant takes the best of its settings by average
precision, which is then fitted on all of them and judged on the test rows by the five metrics.

All 20 data sets x 3 splits x 5 parts are 294 runs: hours on a GPU, days on one core.  Runs are
ordered by split, then the part of the rows, so that a budget (``--for SECONDS``, after
which no run is begun) leaves whole splits; a finished run is added to the file at once, and what is
in the file is not run again.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state
from threadpoolctl import threadpool_limits

from imcc import IMCCClassifierCV
from imcc.datasets import dataset_info, list_datasets, load_dataset, paper_splits
from imcc.estimators import EdgeOfGridWarning
from imcc.metrics import METRICS, evaluate
from imcc_paper import _rows

PERCENTS = (5, 10, 20, 50, 100)
N_FOLDS = 5
MIN_ROWS = 20
#: The values of each weight, those of the clusters: other ones make a quick test.
WEIGHTS: tuple[float, ...] = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)
BETAS: tuple[float, ...] = (1e-5, 1e-4, *WEIGHTS, 1e4, 1e5)
N_CLUSTERS: tuple[int, ...] = (8, 16, 32, 64, 128, 256)
#: Data sets whose columns are standardized, those of experiments/outside.toml.
STANDARDIZED = ("birds", "emotions", "flags")


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
}
FAMILIES = ("kmeans", "random")


class Run(NamedTuple):
    """One part of the training rows of one split of one data set."""

    data: str
    split: int
    percent: int


SETTING = ("alpha", "beta", "gamma", "n_clusters", "width_scale")
COLUMNS = (
    *("data", "split", "percent", "variant", "n_train", "n_test", "n_labels"),
    *SETTING,
    "cv_score",
    *METRICS,
    *("seconds", "device"),
)
WHOLE = ("split", "percent", "n_train", "n_test", "n_labels", "n_clusters")
WORDS = ("data", "variant", "device")


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


class RandomClusters(ClusterMixin, BaseEstimator):
    """The clusters of k-means with their rows permuted.

    Parameters
    ----------
    n_clusters : int
    random_state : int, RandomState instance or None
    """

    def __init__(self, n_clusters: int = 8, random_state: Any = None) -> None:
        self.n_clusters = n_clusters
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Cluster rows, and permute them."""
        random = check_random_state(self.random_state)
        count = min(self.n_clusters, len(X))
        labels = KMeans(count, n_init=1, random_state=random).fit(X).labels_
        self.labels_ = random.permutation(labels)
        return self


def best(search: IMCCClassifierCV, variant: Variant) -> tuple[dict[str, Any], float]:
    """Return the best of a variant's settings in a search, and its score in the folds."""
    allowed: dict[str, Callable[[float], bool]] = {
        "zero": lambda value: value == 0,
        "paper": lambda value: value > 0,
        "both": lambda value: value >= 0,
    }
    results = search.cv_results_
    kept = [
        i
        for i, params in enumerate(results["params"])
        if allowed[variant.alpha](params["alpha"]) and allowed[variant.gamma](params["gamma"])
    ]
    first = min(kept, key=lambda i: results["rank_test_score"][i])
    return results["params"][first], float(results["mean_test_score"][first])


def measure(run: Run, device: str | None = None) -> list[dict[str, Any]]:
    """Return the rows of a run, one for each variant."""
    start = time.perf_counter()
    with threadpool_limits(1), warnings.catch_warnings():
        # Few rows make fewer clusters than asked for.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", EdgeOfGridWarning)
        found = searched(run, device)
    seconds = round(time.perf_counter() - start, 2)
    return [row | {"seconds": seconds, "device": device or "cpu"} for row in found]


def searched(run: Run, device: str | None = None) -> list[dict[str, Any]]:
    """Search all variants on the same folds, and judge what they choose on the test rows."""
    X, relevant, data = rows_of(run.data)
    train, test = paper_splits(data, run.split + 1)[run.split]
    train = part_of(train, run.percent, run.split)
    if run.data in STANDARDIZED:
        X = StandardScaler().fit(X[train]).transform(X)
    searches = {
        family: IMCCClassifierCV(
            alphas=(0.0, *WEIGHTS),
            betas=BETAS,
            gammas=(0.0, *WEIGHTS),
            n_clusters=N_CLUSTERS,
            kernels=("rbf",),
            width_scales=(1.0,),
            clusterer=RandomClusters() if family == "random" else None,
            cv=KFold(N_FOLDS, shuffle=True, random_state=run.split),
            refit=False,
            random_state=run.split,
            device=device,
        ).fit(X[train], relevant[train])
        for family in FAMILIES
    }
    found = []
    for name, variant in VARIANTS.items():
        search = searches[variant.family]
        params, score = best(search, variant)
        model = search.estimator_for(params).fit(X[train], relevant[train])
        found.append(
            {
                **run._asdict(),
                "variant": name,
                "n_train": len(train),
                "n_test": len(test),
                "n_labels": relevant.shape[1],
                **{key: params[key] for key in SETTING if key in params},
                "cv_score": score,
                **evaluate(relevant[test], model.decision_function(X[test])),
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
    return _rows.finished(rows, run_of, "variant", lambda _: VARIANTS)


def _in_words(rows: Sequence[Mapping[str, Any]]) -> str:
    found = {row["variant"]: row["average_precision"] for row in rows}
    return (
        f"average precision {found['none']:.4f} -> {found['kmeans']:.4f} in "
        f"{rows[0]['seconds']:.1f} s"
    )


def plan(data: Sequence[str], n_splits: int, percents: Sequence[int]) -> list[Run]:
    """Return the runs, whole splits first; parts with too few rows are left out."""
    runs = [
        Run(name, split, percent)
        for split in range(n_splits)
        for percent in sorted(percents)
        for name in data
    ]
    return [run for run in runs if n_rows_of(run) >= MIN_ROWS]


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line, and compute what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, required=True, help="CSV file of the rows")
    parser.add_argument("--data", nargs="+", help="data sets (the paper's fifteen and five more)")
    parser.add_argument("--splits", type=int, default=3, help="splits of each data set (3)")
    parser.add_argument("--percents", type=int, nargs="+", default=list(PERCENTS))
    parser.add_argument("--jobs", type=int, default=1, help="processes (1: this one)")
    parser.add_argument("--device", help="where to compute: cuda")
    parser.add_argument("--for", type=float, default=np.inf, dest="budget", metavar="SECONDS")
    asked = parser.parse_args(arguments)
    data = asked.data or [*list_datasets("paper"), *list_datasets("outside")]
    done = finished(stored_rows(asked.output))
    failures = _rows.run_all(
        partial(measure, device=asked.device),
        [run for run in plan(data, asked.splits, asked.percents) if run not in done],
        lambda rows: _rows.add_rows(asked.output, COLUMNS, rows),
        jobs=asked.jobs,
        name=lambda run: f"{run.data}, split {run.split}, {run.percent} %",
        outcome=_in_words,
        seconds=asked.budget,
    )
    return min(failures, 1)


if __name__ == "__main__":
    raise SystemExit(main())
