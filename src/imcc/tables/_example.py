"""A synthetic example table with columns of several types."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from imcc._utils.files import write_whole
from imcc._utils.optional import require
from imcc._utils.validation import check_count

_WORDS = {
    "loud": ["noise", "screaming", "engine", "music", "neighbours"],
    "late": ["waiting", "delayed", "hours", "tomorrow", "queue"],
    "broken": ["cracked", "repair", "leaking", "defect", "smoke"],
    "thanks": ["great", "friendly", "helpful", "quick", "perfect"],
}
_FILLER = "the a it was is our my with about again really still please when this there and"


def example_table(n_rows: int = 800, seed: int = 0) -> tuple[Any, Any]:
    """Return a synthetic table of messages of customers to a company, and their labels.

    It has an id, six numbers, two categories and a text, with 6 % of the cells (except ids)
    missing, and six labels that depend on numbers, on categories, on words of the text, and on each
    other.

    Parameters
    ----------
    n_rows : int, default=800
        Number of rows.
    seed : int, default=0
        Random seed.

    Returns
    -------
    table : pandas.DataFrame
        The table.
    labels : pandas.DataFrame
        The labels, as 0 and 1.

    Examples
    --------
    >>> table, labels = example_table(5)
    >>> list(table.columns)[:4], list(labels.columns)[:2]
    (['ticket', 'age', 'income', 'visits'], ['complaint', 'refund'])
    """
    pd = require("pandas", "The example table")
    check_count("n_rows", n_rows)
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, n_rows)
    income = rng.lognormal(10, 0.6, n_rows).round(0)
    visits = rng.poisson(3, n_rows)
    distance = rng.gamma(2, 8, n_rows).round(1)
    hours = rng.normal(36, 9, n_rows).round(1)
    score = rng.uniform(0, 10, n_rows).round(2)
    region = rng.choice(["Nord", "Süd", "Ost", "West"], n_rows, p=[0.4, 0.3, 0.2, 0.1])
    plan = rng.choice(["basic", "plus", "premium", "trial"], n_rows, p=[0.5, 0.25, 0.15, 0.1])
    topics = {name: rng.random(n_rows) < share for name, share in
              zip(_WORDS, (0.2, 0.3, 0.25, 0.3), strict=True)}  # fmt: skip
    filler, texts = _FILLER.split(), []
    for i in range(n_rows):
        words = list(rng.choice(filler, rng.integers(5, 14)))
        for name, terms in _WORDS.items():
            if topics[name][i]:
                words += list(rng.choice(terms, rng.integers(1, 3), replace=False))
        rng.shuffle(words)
        texts.append(" ".join(words))
    noise = rng.normal(size=(n_rows, 6))
    complaint = (topics["late"] | topics["broken"]) & (noise[:, 0] > -1.3)
    labels = pd.DataFrame(
        {
            "complaint": complaint,
            "refund": complaint & (income < 30_000) & (noise[:, 1] > -1.0),
            "upgrade": (plan != "premium") & (visits + 0.6 * noise[:, 2] > 4),
            "senior": age + 3 * noise[:, 3] > 65,
            "remote": (distance > 20) & (region != "West") & (noise[:, 4] > -1.5),
            "praise": topics["thanks"] & ~topics["broken"] & (score + noise[:, 5] > 3),
        }
    ).astype(int)
    table = pd.DataFrame(
        {
            "ticket": [f"T-{seed:02d}{i:05d}" for i in rng.permutation(n_rows)],
            "age": age.astype(float),
            "income": income,
            "visits": visits.astype(float),
            "distance": distance,
            "hours": hours,
            "score": score,
            "region": region,
            "plan": plan,
            "message": texts,
        }
    )
    gaps = rng.random((n_rows, 9)) < 0.06
    for j, name in enumerate(table.columns[1:]):
        table.loc[gaps[:, j], name] = None
    return table, labels


def write_example(path: str | os.PathLike[str], n_rows: int = 800, seed: int = 0) -> Path:
    """Write the example table with its labels to a CSV file, with an ``n/a`` among the numbers.

    Parameters
    ----------
    path : path-like
        File to write.
    n_rows, seed
        As for :func:`example_table`.

    Returns
    -------
    pathlib.Path
        The file.
    """
    pd = require("pandas", "The example table")
    table, labels = example_table(n_rows, seed)
    shown = table.astype(object)
    gaps = np.flatnonzero(table["income"].isna())
    if len(gaps):
        shown.loc[int(gaps[0]), "income"] = "n/a"
    text = pd.concat([shown, labels], axis=1).to_csv(index=False, lineterminator="\n")
    return write_whole(path, text.encode("utf-8"))
