"""Tables as people have them: the defaults of TableClassifier against two pipelines by hand.

    python -m imcc_paper.tables                 # adds the rows that results/tables.csv lacks
    python -m imcc_paper.tables flags made --splits 1 --methods imcc logistic
    python -m imcc_paper.tables goemotions-whole debian-whole --splits 1 --device cuda --jobs 16

The other methods are what a careful user of scikit-learn writes: a ColumnTransformer (imputed and
standardised numbers, one-hot categories, TF-IDF of words, pairs of words and parts of words, as our
encoder has them) with one logistic regression per label, whose C is chosen, and the same with
LightGBM, whose numbers of trees are chosen by early stopping.  They are given the kinds of the
columns that our schema infers.  C and a threshold per label, for F1 as ours, are chosen on held-out
rows of the training rows: five folds or, of more than 5,000 rows, a fifth of them.

30 % of the rows are held out, in splits 0, 1 and 2; what was looked at while the defaults of imcc
were chosen are splits 1000 and above.  Times are those of fitting and predicting: of the CPU, or
those that pass where there is a device or more than one job.

made        the example of `imcc datasets example`: an id, six numbers, two categories, one text,
            6 % missing cells, six labels; 800 rows
goemotions  short comments with 28 emotions as tags (needs IMCC_DATA_MIRROR); 2,000 at random
birds, flags  MULAN's, numbers and categories (need IMCC_DATA_MIRROR)
debian      the package index of apt, if there is one: description, section, size, priority, and
            the tags of the packages that at least 1 % have as labels; 2,000 packages at random
goemotions-whole, debian-whole  all rows; only where they are named, since they take long (a GPU is
            useful: --device cuda)
"""

from __future__ import annotations

import argparse
import glob
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, ShuffleSplit, train_test_split
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline, make_union
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from imcc import KernelEnsembleClassifier
from imcc.datasets import load_dataset
from imcc.estimators import choose_thresholds
from imcc.metrics import average_precision, log_loss, macro_average_precision, macro_f1
from imcc.tables import TableClassifier, TableEncoder, example_table, read_tags, tag_matrix
from imcc_paper import _rows
from imcc_paper._measured import table as markdown
from imcc_paper.methods import LightGBMBaseline
from imcc_paper.places import RESULTS

ROWS = RESULTS / "tables.csv"


def sample(frame: pd.DataFrame, n_rows: int | None) -> pd.DataFrame:
    """Return some rows, the same for every frame of as many rows, in their order; None: all."""
    if n_rows is None:
        return frame
    picked = np.sort(np.random.RandomState(0).permutation(len(frame))[:n_rows])
    return frame.iloc[picked].reset_index(drop=True)


def goemotions(files: Sequence[str], n_rows: int | None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return comments and emotions of those of the files that are there, all or some at random."""
    folder = Path(os.environ["IMCC_DATA_MIRROR"]) / "goemotions"
    lines = [
        line
        for file in files
        if (folder / file).exists()
        for line in (folder / file).read_text("utf-8").splitlines()
    ]
    rows = [line.split("\t") for line in lines]
    names = (folder / "emotions.txt").read_text().split()
    Y, numbers = tag_matrix(read_tags([row[1] for row in rows], ","))
    columns = [names[int(number)] for number in numbers]
    table, labels = (
        pd.DataFrame({"comment": [row[0] for row in rows]}),
        pd.DataFrame(Y, columns=columns),
    )
    return sample(table, n_rows), sample(labels, n_rows)


def mulan(name: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return a MULAN data set as a table, its nominal columns as words."""
    dataset = load_dataset(name)
    frame = pd.DataFrame(np.asarray(dataset.X), columns=list(dataset.feature_names))
    groups: dict[str, list[str]] = {}
    for column in frame.columns:
        if "=" in column:
            groups.setdefault(column.partition("=")[0], []).append(column)
    for column, indicators in groups.items():
        words = np.array([text.partition("=")[2] for text in indicators])
        frame[column] = [f"v{word}" for word in words[frame[indicators].to_numpy().argmax(axis=1)]]
        frame = frame.drop(columns=indicators)
    return frame, pd.DataFrame(np.asarray(dataset.Y), columns=list(dataset.label_names))


def debian_index() -> pd.DataFrame:
    """Return the packages of apt's index that have tags."""
    files = glob.glob("/var/lib/apt/lists/*_main_binary-*_Packages*")
    if not files:
        sys.exit("debian: apt has no package index here (apt-get update)")
    helper = ["/usr/lib/apt/apt-helper", "cat-file", max(files, key=os.path.getsize)]
    text = subprocess.run(helper, capture_output=True, check=True).stdout.decode("utf-8")
    rows = []
    for stanza in text.split("\n\n"):
        fields = dict(
            line.split(": ", 1)
            for line in stanza.replace("\n ", " ").splitlines()
            if ": " in line and not line.startswith(" ")
        )
        if "Tag" in fields:
            rows.append(fields)
    return pd.DataFrame(
        {
            "package": [row["Package"] for row in rows],
            "description": [row.get("Description") for row in rows],
            "section": [row.get("Section") for row in rows],
            "priority": [row.get("Priority") for row in rows],
            "installed_size": [float(row.get("Installed-Size", "nan")) for row in rows],
            "size": [float(row.get("Size", "nan")) for row in rows],
            "tag": [row["Tag"] for row in rows],
        }
    )


def debian(n_rows: int | None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return packages and their tags; tags of at least 1 % of them."""
    index = debian_index()
    Y, names = tag_matrix(read_tags(index["tag"].tolist(), ","))
    table = sample(index.drop(columns="tag"), n_rows)
    labels = sample(pd.DataFrame(Y, columns=names), n_rows)
    return table, labels.loc[:, labels.mean() >= 0.01]


#: What makes each table; those that are not in DEFAULT must be named.
TABLES: dict[str, Callable[[], tuple[pd.DataFrame, pd.DataFrame]]] = {
    "made": example_table,
    "goemotions": lambda: goemotions(["dev.tsv"], 2000),
    "birds": lambda: mulan("birds"),
    "flags": lambda: mulan("flags"),
    "debian": lambda: debian(2000),
    "goemotions-whole": lambda: goemotions(["train.tsv", "dev.tsv", "test.tsv"], None),
    "debian-whole": lambda: debian(None),
}
DEFAULT = ("made", "goemotions", "birds", "flags", "debian")


#: Values of C that the pipeline with logistic regressions chooses from.
CS = (0.1, 1.0, 10.0)
#: Above, a fifth of the training rows is held out once.
MANY_ROWS = 5000


def by_hand(table: pd.DataFrame, classifier: object) -> Pipeline:
    """Return the pipeline that a careful user would write for the kinds of the table's columns."""
    schema = TableEncoder().fit(table).schema_
    numbers = schema.of_kind("number", "yes/no")
    words = schema.of_kind("category")
    steps: list[tuple[str, object, object]] = [
        ("numbers", make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), numbers),
        (
            "words",
            make_pipeline(
                SimpleImputer(strategy="constant", fill_value="missing"),
                OneHotEncoder(handle_unknown="ignore"),
            ),
            words,
        ),
    ]
    steps = [step for step in steps if step[2]]
    for name in schema.of_kind("text"):
        common = {"sublinear_tf": True, "strip_accents": "unicode", "max_features": 20_000}
        terms = TfidfVectorizer(ngram_range=(1, 2), min_df=2, **common)
        parts = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), min_df=3, **common)
        steps.append((f"text {name}", make_union(terms, parts), name))
    return make_pipeline(ColumnTransformer(steps), classifier)


class ByHand:
    """A pipeline with a threshold per label, the best of some by log loss on held-out rows.

    Parameters
    ----------
    classifiers : sequence of classifiers
        The last steps of the pipelines to choose from.
    seed : int
        Of the held-out rows.
    """

    def __init__(self, classifiers: Sequence[object], seed: int) -> None:
        self.classifiers = classifiers
        self.seed = seed

    def fit(self, X: pd.DataFrame, Y: np.ndarray) -> ByHand:
        """Choose a pipeline and the thresholds, and fit it to all rows."""
        many = len(X) > MANY_ROWS
        folds = (
            ShuffleSplit(1, test_size=0.2, random_state=self.seed)
            if many
            else KFold(5, shuffle=True, random_state=self.seed)
        )
        parts = list(folds.split(X))
        truth = Y[np.concatenate([outside for _, outside in parts])]
        best = np.inf
        for classifier in self.classifiers:
            pipeline = by_hand(X, classifier)
            chances = np.vstack(
                [
                    clone(pipeline).fit(X.iloc[inside], Y[inside]).predict_proba(X.iloc[outside])
                    for inside, outside in parts
                ]
            )
            loss = log_loss(truth, chances)
            if loss < best:
                best, self.pipeline_ = loss, pipeline
                self.thresholds_ = choose_thresholds(truth, chances, "f1", default=0.5).thresholds
        self.pipeline_.fit(X, Y)
        return self

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        """Return the probabilities of labels."""
        return np.asarray(self.pipeline_.predict_proba(X))

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        """Return the labels whose probabilities reach their thresholds."""
        return self.predict_proba(X) >= self.thresholds_


#: The names of the methods, as the page has them.
METHODS = {"imcc": "imcc", "logistic": "logistic regression", "lightgbm": "LightGBM"}


def make_model(
    method: str, split: int, device: str | None, n_jobs: int
) -> TableClassifier | ByHand:
    """Return a method with its seed."""
    if method == "imcc":
        ours = None  # the default
        if device is not None:
            ours = KernelEnsembleClassifier(device=device, random_state=0)
        return TableClassifier(ours, random_state=0)
    if method == "logistic":
        per_label = [
            OneVsRestClassifier(LogisticRegression(C=C, max_iter=2000), n_jobs=n_jobs) for C in CS
        ]
        return ByHand(per_label, split)
    return ByHand([LightGBMBaseline(n_jobs=n_jobs, random_state=split)], split)


#: The metrics, as the page has them, and whether larger is better.
METRICS = {
    "label_average_precision": ("average precision per label", True),
    "average_precision": ("per row", True),
    "log_loss": ("log loss", False),
    "macro_f1": ("macro-F1", True),
}
FIELDS = ("table", "split", "method", "n_train", "n_test", "n_labels", *METRICS, "seconds")


def run(
    name: str,
    splits: int,
    methods: Sequence[str],
    device: str | None = None,
    n_jobs: int = 1,
    done: Collection[tuple[str, int, str]] = (),
) -> Iterator[dict[str, object]]:
    """Yield a row for each split and method that is not done."""
    table, labels = TABLES[name]()
    text = [c for c in table.columns if c in ("message", "comment", "description")]
    table[text] = table[text].fillna("")
    truth = labels.to_numpy()
    clock = time.process_time if device is None and n_jobs == 1 else time.perf_counter
    for split in range(splits):
        train, test = train_test_split(np.arange(len(table)), test_size=0.3, random_state=split)
        for method in methods:
            if (name, split, method) in done:
                continue
            model = make_model(method, split, device, n_jobs)
            start = clock()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(
                    table.iloc[train], labels.iloc[train] if method == "imcc" else truth[train]
                )
                chances = np.asarray(model.predict_proba(table.iloc[test]))
                predicted = np.asarray(model.predict(table.iloc[test]))
            seconds = clock() - start
            row = {
                "table": name,
                "split": split,
                "method": method,
                "n_train": len(train),
                "n_test": len(test),
                "n_labels": truth.shape[1],
                "label_average_precision": macro_average_precision(truth[test], chances),
                "average_precision": average_precision(truth[test], chances),
                "log_loss": log_loss(truth[test], chances),
                "macro_f1": macro_f1(truth[test], predicted),
                "seconds": round(seconds, 1),
            }
            print(row, flush=True)
            yield row


def stored_rows(path: Path = ROWS) -> pd.DataFrame:
    """Return the rows of a file."""
    return pd.read_csv(path)


def page_table(rows: pd.DataFrame) -> str:
    """Return the table of docs/tables.md: means over splits, the best in bold."""
    titles = [title for title, _ in METRICS.values()]
    lines = []
    for name in (name for name in TABLES if name in set(rows["table"])):
        own = rows[rows["table"] == name]
        size = f"{own['n_train'].iloc[0] + own['n_test'].iloc[0]:,}, {own['n_labels'].iloc[0]}"
        size += f", {own['split'].nunique()}"
        means = own.groupby("method")[[*METRICS, "seconds"]].mean()
        best = {
            metric: means[metric].max() if larger else means[metric].min()
            for metric, (_, larger) in METRICS.items()
        }
        for method in (method for method in METHODS if method in means.index):
            cells = []
            for metric in METRICS:
                cell = f"{means.loc[method, metric]:.3f}"
                cells.append(f"**{cell}**" if cell == f"{best[metric]:.3f}" else cell)
            cells.append(f"{means.loc[method, 'seconds']:.0f}")
            where = [name, size] if method == "imcc" else ["", ""]
            lines.append([*where, METHODS[method], *cells])
    header = ["table", "rows, labels, splits", "method", *titles, "seconds"]
    return markdown(header, lines, n_left=3)


def blocks() -> dict[str, str]:
    """Return the marked block of docs/tables.md."""
    return {"tables": page_table(stored_rows())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", default=list(DEFAULT))
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--csv", type=Path, default=ROWS, help="the file of the rows")
    parser.add_argument("--device", help="where the ensemble computes, as torch names it")
    parser.add_argument("--jobs", type=int, default=1, help="cores of the other methods")
    asked = parser.parse_args()
    known = stored_rows(asked.csv)
    done = set(zip(known["table"], known["split"], known["method"], strict=True))
    for name in asked.tables:
        for row in run(name, asked.splits, asked.methods, asked.device, asked.jobs, done):
            _rows.add_rows(asked.csv, FIELDS, [row])


if __name__ == "__main__":
    main()
