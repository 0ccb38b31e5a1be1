"""Tables as people have them: the defaults of TableClassifier against two pipelines by hand.

    python -m benchmarks.tables [made] [goemotions] [birds] [flags] [debian] [--splits 3]
    python -m benchmarks.tables --csv results/tables.csv      # add the rows that are missing there
    python -m benchmarks.tables --summary results/tables.csv  # the table of docs/tables.md

The rivals are what a careful user of scikit-learn writes: a ColumnTransformer (imputed and
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
from collections.abc import Collection, Iterator, Sequence
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

from imcc.datasets import load_dataset
from imcc.metrics import average_precision
from imcc.tabular import TableClassifier, TableEncoder, example_table, read_tags, tag_matrix


def sample(frame: pd.DataFrame, n_rows: int) -> pd.DataFrame:
    """Return some rows, the same for every frame of as many rows, in their order."""
    picked = np.sort(np.random.RandomState(0).permutation(len(frame))[:n_rows])
    return frame.iloc[picked].reset_index(drop=True)


def goemotions(n_rows: int = 2000) -> tuple[pd.DataFrame, pd.DataFrame]:
    folder = Path(os.environ["IMCC_DATA_MIRROR"]) / "goemotions"
    rows = [line.split("\t") for line in (folder / "dev.tsv").read_text("utf-8").splitlines()]
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


def debian(n_rows: int = 2000) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the packages of apt's index that have tags; tags of at least 1 % of them."""
    files = glob.glob("/var/lib/apt/lists/*_main_binary-*_Packages*")
    if not files:
        sys.exit("debian: apt has no package index here (apt-get update)")
    file = max(files, key=os.path.getsize)
    helper = ["/usr/lib/apt/apt-helper", "cat-file", file]
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
    Y, names = tag_matrix(read_tags([row["Tag"] for row in rows], ","))
    table = pd.DataFrame(
        {
            "package": [row["Package"] for row in rows],
            "description": [row.get("Description") for row in rows],
            "section": [row.get("Section") for row in rows],
            "priority": [row.get("Priority") for row in rows],
            "installed_size": [float(row.get("Installed-Size", "nan")) for row in rows],
            "size": [float(row.get("Size", "nan")) for row in rows],
        }
    )
    table, labels = sample(table, n_rows), sample(pd.DataFrame(Y, columns=names), n_rows)
    return table, labels.loc[:, labels.mean() >= 0.01]


TABLES = {
    "made": example_table,
    "goemotions": goemotions,
    "birds": lambda: mulan("birds"),
    "flags": lambda: mulan("flags"),
    "debian": debian,
}


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


def lightgbm() -> object:
    import lightgbm as lgb

    model = lgb.LGBMClassifier(
        n_estimators=200, learning_rate=0.05, num_leaves=15, n_jobs=1, verbose=-1
    )
    return OneVsRestClassifier(model, n_jobs=-1)


def methods(with_lightgbm: bool) -> dict[str, object]:
    found: dict[str, object] = {
        "imcc": TableClassifier(random_state=0),
        "logistic": OneVsRestClassifier(LogisticRegression(max_iter=2000)),
        "logistic, C=10": OneVsRestClassifier(LogisticRegression(C=10, max_iter=2000)),
    }
    if with_lightgbm:
        found["lightgbm"] = lightgbm()
    return found


FIELDS = (
    *("table", "split", "method", "n_train", "n_test", "n_labels"),
    *("macro_f1", "average_precision", "seconds"),
)


def run(
    name: str, splits: int, with_lightgbm: bool, done: Collection[tuple[str, int, str]] = ()
) -> Iterator[dict[str, object]]:
    """Yield a row for each split and method that is not done."""
    table, labels = TABLES[name]()
    for split in range(splits):
        train, test = train_test_split(np.arange(len(table)), test_size=0.3, random_state=split)
        Y, Y_test = labels.iloc[train], labels.iloc[test].to_numpy()
        for method, classifier in methods(with_lightgbm).items():
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
    """Return the table of docs/tables.md: means over the splits, and ours against the best."""
    rivals = ("logistic", "logistic, C=10", "lightgbm")
    lines = [
        "| table | rows, labels | splits | measure | imcc | logistic | logistic, C=10 | LightGBM "
        "| against the best |",
        "| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name in (name for name in TABLES if name in set(rows["table"])):
        own = rows[rows["table"] == name]
        size = f"{own['n_train'].iloc[0] + own['n_test'].iloc[0]:,}, {own['n_labels'].iloc[0]}"
        for measure, word in (("macro_f1", "macro-F1"), ("average_precision", "average precision")):
            means = own.groupby("method")[measure].mean()
            best = max(means[method] for method in rivals if method in means)
            cells = [f"{means[m]:.3f}" if m in means else "-" for m in ("imcc", *rivals)]
            lines.append(
                f"| {name} | {size} | {own['split'].nunique()} | {word} | {' | '.join(cells)} "
                f"| {means['imcc'] - best:+.3f} |"
            )
    return "\n".join(lines)


def add_missing(path: Path, names: Sequence[str], splits: int, with_lightgbm: bool) -> None:
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
            for row in run(name, splits, with_lightgbm, done):
                writer.writerow(row)
                file.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", default=list(TABLES))
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--no-lightgbm", action="store_true")
    parser.add_argument("--csv", help="add the rows that are missing in this file")
    parser.add_argument("--summary", help="print the table of means of the rows in this file")
    options = parser.parse_args()
    if options.summary:
        print(summary(pd.read_csv(options.summary)))
        return
    if options.csv:
        add_missing(Path(options.csv), options.tables, options.splits, not options.no_lightgbm)
        return
    print(
        summary(
            pd.DataFrame(
                [
                    row
                    for name in options.tables
                    for row in run(name, options.splits, not options.no_lightgbm)
                ]
            )
        )
    )


if __name__ == "__main__":
    main()
