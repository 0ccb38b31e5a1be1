"""Tables as people have them: the defaults of TableClassifier against two pipelines by hand.

    python -m imcc_paper.tables [made] [goemotions] [birds] [flags] [debian] [--splits 3]
    python -m imcc_paper.tables --csv results/tables.csv      # add the rows that are missing there
    python -m imcc_paper.tables --summary results/tables.csv  # the table of docs/tables.md
    python -m imcc_paper.tables goemotions-whole debian-whole --splits 1 --device cuda

The other methods are what a careful user of scikit-learn writes: a ColumnTransformer (imputed and
standardised numbers, one-hot categories, TF-IDF of words and pairs of words) with one logistic
regression per label, and the same with LightGBM.  They are given the kinds of the columns that our
schema infers.  All predict as they do by default.  30 % of the rows are held out, in splits 0, 1
and 2; what was looked at while the defaults were chosen are splits 1000 and above.

made        the example of `imcc datasets example`: an id, six numbers, two categories, one text,
            6 % missing cells, six labels; 800 rows
goemotions  short comments with 28 emotions as tags (needs IMCC_DATA_MIRROR); 2,000 at random
birds, flags  MULAN's, numbers and categories (need IMCC_DATA_MIRROR)
debian      the package index of apt, if there is one: description, section, size, priority, and
            the tags of the packages that at least 1 % have as labels; 2,000 packages at random
goemotions-whole, debian-whole  all rows; only where they are named, since they take long (a GPU is
            useful: --device cuda)

Debian's index can be taken along to a machine without apt: `--write-debian FILE` writes the columns
that are used to a Parquet file, which `--debian FILE` reads.
"""

from __future__ import annotations

import argparse
import csv
import glob
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from imcc import KernelEnsembleClassifier
from imcc.datasets import load_dataset
from imcc.metrics import average_precision
from imcc.tables import TableClassifier, TableEncoder, example_table, read_tags, tag_matrix


def sample(frame: pd.DataFrame, n_rows: int | None) -> pd.DataFrame:
    """Return some rows, the same for every frame of as many rows, in their order; None: all."""
    if n_rows is None:
        return frame
    picked = np.sort(np.random.RandomState(0).permutation(len(frame))[:n_rows])
    return frame.iloc[picked].reset_index(drop=True)


@dataclass(frozen=True)
class Settings:
    """What the command line says about where the tables are and how the methods are run."""

    debian: str | None = None
    device: str | None = None
    n_jobs: int = -1
    with_lightgbm: bool = True
    max_rows: int | None = None


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


def debian_index(file: str | None = None) -> pd.DataFrame:
    """Return the packages that have tags, of a file of --write-debian or of apt's index."""
    if file is not None:
        return pd.read_parquet(file)
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


def debian(file: str | None, n_rows: int | None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return packages and their tags; tags of at least 1 % of them."""
    index = debian_index(file)
    Y, names = tag_matrix(read_tags(index["tag"].tolist(), ","))
    table = sample(index.drop(columns="tag"), n_rows)
    labels = sample(pd.DataFrame(Y, columns=names), n_rows)
    return table, labels.loc[:, labels.mean() >= 0.01]


#: What makes each table, of the settings; those that are not in DEFAULT must be named.
TABLES: dict[str, Callable[[Settings], tuple[pd.DataFrame, pd.DataFrame]]] = {
    "made": lambda _: example_table(),
    "goemotions": lambda _: goemotions(["dev.tsv"], 2000),
    "birds": lambda _: mulan("birds"),
    "flags": lambda _: mulan("flags"),
    "debian": lambda settings: debian(settings.debian, 2000),
    "goemotions-whole": lambda settings: goemotions(
        ["train.tsv", "dev.tsv", "test.tsv"], settings.max_rows
    ),
    "debian-whole": lambda settings: debian(settings.debian, settings.max_rows),
}
DEFAULT = ("made", "goemotions", "birds", "flags", "debian")


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
        steps.append((f"text {name}", TfidfVectorizer(ngram_range=(1, 2), min_df=2), name))
    for name in schema.of_kind("yes/no"):
        table[name] = table[name].astype(float)
    return make_pipeline(ColumnTransformer(steps), classifier)


def lightgbm(n_jobs: int) -> object:
    import lightgbm as lgb

    model = lgb.LGBMClassifier(
        n_estimators=200, learning_rate=0.05, num_leaves=15, n_jobs=1, verbose=-1
    )
    return OneVsRestClassifier(model, n_jobs=n_jobs)


def methods(settings: Settings) -> dict[str, object]:
    n_jobs = settings.n_jobs
    ours = None  # the default
    if settings.device is not None:
        ours = KernelEnsembleClassifier(device=settings.device, random_state=0)
    found: dict[str, object] = {
        "imcc": TableClassifier(ours, random_state=0),
        "logistic": OneVsRestClassifier(LogisticRegression(max_iter=2000), n_jobs=n_jobs),
        "logistic, C=10": OneVsRestClassifier(
            LogisticRegression(C=10, max_iter=2000), n_jobs=n_jobs
        ),
    }
    if settings.with_lightgbm:
        found["lightgbm"] = lightgbm(n_jobs)
    return found


FIELDS = (
    *("table", "split", "method", "n_train", "n_test", "n_labels"),
    *("macro_f1", "average_precision", "seconds"),
)


def run(
    name: str, splits: int, settings: Settings, done: Collection[tuple[str, int, str]] = ()
) -> Iterator[dict[str, object]]:
    """Yield a row for each split and method that is not done."""
    table, labels = TABLES[name](settings)
    for split in range(splits):
        train, test = train_test_split(np.arange(len(table)), test_size=0.3, random_state=split)
        Y, Y_test = labels.iloc[train], labels.iloc[test].to_numpy()
        for method, classifier in methods(settings).items():
            if (name, split, method) in done:
                continue
            X, X_test = table.iloc[train].copy(), table.iloc[test].copy()
            model = classifier if method == "imcc" else by_hand(X, classifier)
            text = [c for c in X.columns if c in ("message", "comment", "description")]
            for frame in (X, X_test):
                frame[text] = frame[text].fillna("")
            start = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(X, Y if method == "imcc" else Y.to_numpy())
                chances = np.asarray(model.predict_proba(X_test))
                predicted = np.asarray(model.predict(X_test))
            seconds = time.perf_counter() - start
            row = {
                "table": name,
                "split": split,
                "method": method,
                "n_train": len(train),
                "n_test": len(test),
                "n_labels": Y_test.shape[1],
                "macro_f1": f1_score(Y_test, predicted, average="macro", zero_division=0),
                "average_precision": average_precision(Y_test, chances),
                "seconds": round(seconds, 1),
            }
            print(row, flush=True)
            yield row


def summary(rows: pd.DataFrame) -> str:
    """Return the table of docs/tables.md: mean average precision, and ours against the best.

    Not macro-F1: ours has tuned thresholds, and the pipelines do not.
    """
    others = ("logistic", "logistic, C=10", "lightgbm")
    lines = [
        "| table | rows, labels | splits | imcc | logistic | logistic, C=10 | LightGBM "
        "| against the best |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name in (name for name in TABLES if name in set(rows["table"])):
        own = rows[rows["table"] == name]
        size = f"{own['n_train'].iloc[0] + own['n_test'].iloc[0]:,}, {own['n_labels'].iloc[0]}"
        means = own.groupby("method")["average_precision"].mean()
        best = max(means[method] for method in others if method in means)
        cells = [f"{means['imcc']:.3f}"]
        cells += [f"{means[m]:.3f}" if m in means else "-" for m in others]
        lines.append(
            f"| {name} | {size} | {own['split'].nunique()} | {' | '.join(cells)} "
            f"| {means['imcc'] - best:+.3f} |"
        )
    return "\n".join(lines)


def add_missing(path: Path, names: Sequence[str], splits: int, settings: Settings) -> None:
    """Run what the file does not have, and add each row as it comes."""
    done = set()
    if path.exists():
        known = pd.read_csv(path)
        done = set(zip(known["table"], known["split"], known["method"], strict=True))
    with path.open("a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        if not done:
            writer.writeheader()
        for name in names:
            for row in run(name, splits, settings, done):
                writer.writerow(row)
                file.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", default=list(DEFAULT))
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--no-lightgbm", action="store_true")
    parser.add_argument("--csv", help="add the rows that are missing in this file")
    parser.add_argument("--summary", help="print the table of means of the rows in this file")
    parser.add_argument("--debian", metavar="FILE", help="Debian's index, of --write-debian")
    parser.add_argument("--write-debian", metavar="FILE", help="write apt's index to this file")
    parser.add_argument("--device", help="where the ensemble computes, as torch names it")
    parser.add_argument(
        "--jobs", type=int, default=-1, help="labels at a time, of the other methods"
    )
    parser.add_argument("--max-rows", type=int, help="of the whole tables, so many at random")
    options = parser.parse_args()
    if options.write_debian:
        debian_index().to_parquet(options.write_debian, compression="zstd")
        return
    settings = Settings(
        options.debian,
        options.device,
        options.jobs,
        not options.no_lightgbm,
        options.max_rows,
    )
    if options.summary:
        print(summary(pd.read_csv(options.summary)))
        return
    if options.csv:
        add_missing(Path(options.csv), options.tables, options.splits, settings)
        return
    print(
        summary(
            pd.DataFrame(
                [row for name in options.tables for row in run(name, options.splits, settings)]
            )
        )
    )


if __name__ == "__main__":
    main()
