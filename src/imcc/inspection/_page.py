"""A page about one model: how good it is, where it errs, and which labels look wrong."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from imcc._utils.config import get_config
from imcc._utils.errors import InvalidArgumentError
from imcc._utils.files import save
from imcc._utils.html import embedded_json, render_page
from imcc._utils.progress import part, report_progress
from imcc._utils.text import printable
from imcc._utils.validation import (
    check_count,
    check_number,
)
from imcc._utils.wrappers import describe, first_with
from imcc.estimators.cross_fit import deciding_method, label_scores
from imcc.estimators.thresholds import decision_thresholds
from imcc.inspection._bootstrap import (
    check_resampling,
    estimate,
    ranked_measures,
    resampled_counts,
    tails_of,
)
from imcc.inspection._columns import explain_columns
from imcc.inspection._label_issues import (
    LabelIssues,
    find_label_issues,
    kept_probabilities,
    signs_and_names,
)
from imcc.inspection._mixed import as_rows, make_mixer, take_rows, values_of_row
from imcc.inspection._results import names_of_labels

# Thresholds of the slider: hundredths, and finer near 0 and 1, where those of rare labels are.
_FINE = (0.001, 0.002, 0.003, 0.005, 0.007, 0.015, 0.025)
_GRID = np.unique(np.round([*np.arange(101) / 100, *_FINE, *(1 - np.array(_FINE))], 3))
_N_BINS = 10
# The most errors per label and kind; rows with their cells; labels with errors; suspect labels;
# labels in the squares of co-occurrence; columns of a row; characters of all cells.
_ERRORS, _ROWS, _LABELS, _ISSUES, _SQUARE, _COLUMNS = 5, 600, 300, 300, 30, 30
_CHARACTERS, _LONGEST = 2_000_000, 400
# Explanations compare a row with this many others, by this many mixed rows, and show so many parts.
_BACKGROUND, _EVALUATIONS, _PARTS = 20, 1000, 6
_VIEWS = {
    "raw": "the columns as they are",
    "standard": "standardised columns",
    "ranks": "ranks within each column",
    "root": "square roots",
    "unit": "rows scaled to unit length",
    "tfidf": "words weighted by how rare they are",
}
_KERNELS = {"rbf": "smooth kernel", "laplacian": "rough kernel", "linear": "linear model"}


def model_page(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    path: str | os.PathLike[str] | None = None,
    title: str | None = None,
    costs: tuple[float, float] | Mapping[str, tuple[float, float]] | None = None,
    row_names: Sequence[object] | None = None,
    label_names: Sequence[str] | None = None,
    feature_names: Sequence[str] | None = None,
    n_explained: int = 20,
    n_resamples: int = 200,
    random_state: int = 0,
) -> str:
    """Return an HTML page about a fitted model: its quality, its errors, and suspect labels.

    The page is one file that loads nothing, for any browser, large or small, light or dark.

    Parameters
    ----------
    model : classifier
        A fitted multi-label or binary classifier with ``predict_proba`` or ``decision_function``,
        also of scikit-learn and in pipelines.
    X : array-like, data frame, Arrow table or sparse matrix, default=None
        Rows to judge the model by.  These should not be its training rows, unless the model keeps
        held-out probabilities (``held_out_proba_``): the training rows, in their order, are then
        recognised by their labels and judged by these.  Without rows, the page uses the held-out
        probabilities, and does not show rows.
    y : array-like of shape (n_samples, n_labels), default=None
        True labels of the rows, coded {0, 1}, {-1, +1} or boolean, or a set of labels per row; for
        a :class:`imcc.TableClassifier` also names of columns of X, as in ``fit``.  NaN is an
        unknown label, which is left out.
    path : path-like, default=None
        File to write, too.
    title : str, default=None
        Title; the class names of the model by default.
    costs : (float, float), or mapping of label names to such pairs, default=None
        Cost of a false positive and of a false negative, from which the page computes the cost of
        all errors at a threshold, and the cheapest threshold.
    row_names : sequence, default=None
        Identifiers of the rows; their indices by default.
    label_names, feature_names : sequence of str, default=None
        Names of labels and columns; by default those stored by the model.
    n_explained : int, default=20
        Number of wrongly predicted rows whose scores are explained by their columns.
    n_resamples : int, default=200
        Number of bootstrap resamples for the intervals; 0 gives none.
    random_state : int, default=0
        Seed of the bootstrap and the explanations.

    Returns
    -------
    str
        The page.

    See Also
    --------
    find_label_issues : The list of suspect labels.
    evaluate_model : The numbers.

    Notes
    -----
    The page contains at most 5 errors of each kind per label (for up to 300 labels, and 600 rows),
    300 suspect labels, 30 columns per row, 400 characters per cell and 2 million characters of
    cells: it stays below 5 MB.  The slider has 113 positions and the model's own threshold.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from imcc import IMCCClassifier
    >>> from imcc.estimators import MultilabelCalibrator
    >>> X, Y = make_multilabel_classification(200, n_classes=4, random_state=0)
    >>> clf = MultilabelCalibrator(IMCCClassifier(n_clusters=8, random_state=0)).fit(X, Y)
    >>> page = model_page(clf)
    >>> page.startswith("<!doctype html>")
    True
    """
    check_count("n_explained", n_explained, at_least=0)
    check_resampling(n_resamples, 0.95, at_least=0)
    shares = (1.0, 1.0, 3.0)
    with part(0, shares, "scoring rows"):
        judged = _judge(model, X, y, label_names)
    n = len(judged.signs)
    own_names = [str(name) for name in (range(n) if row_names is None else row_names)]
    if len(own_names) != n:
        raise InvalidArgumentError("row_names", f"has {len(own_names)} entries for {n} rows")
    price = _prices(costs, judged.names)
    with part(1, shares, "resampling"):
        labels = _labels(judged, n_resamples, random_state)
    issues = None
    if judged.is_probability:
        y_known = np.where(judged.signs == 0, np.nan, judged.signs > 0)
        issues = find_label_issues(judged.values, y_known, label_names=judged.names)
    errors = _errors(judged)
    rows: dict[int, dict[str, Any]] = {}
    columns, n_columns = list[str](), 0
    if X is not None:
        wanted = list(dict.fromkeys(i for pair in errors for side in pair for i in side))
        wanted += [int(i) for i in issues.rows[:_ISSUES]] if issues is not None else []
        wanted = list(dict.fromkeys(wanted))[:_ROWS]
        with part(2, shares, "explaining errors"):
            columns, n_columns, cells = _cells(model, X, wanted, feature_names)
            rows = {i: {"cells": c} for i, c in zip(wanted, cells, strict=True)}
            why = _explanations(model, X, errors, n_explained, judged, feature_names, random_state)
        for i, parts in why.items():
            rows.setdefault(i, {})["why"] = parts
    shown = [] if issues is None else _issue_rows(issues, own_names)
    data = {
        "labels": [
            {
                "name": printable(name),
                **label["page"],
                "cost": list(price[j]) if price is not None else None,
                "fp": [[i, _number(judged.values[i, j])] for i in errors[j][0]],
                "fn": [[i, _number(judged.values[i, j])] for i in errors[j][1]],
            }
            for j, (name, label) in enumerate(zip(judged.names, labels, strict=True))
        ],
        "grid": _GRID.tolist() if judged.is_probability else None,
        "columns": columns,
        "n_columns": n_columns,
        "rows": {str(i): row for i, row in rows.items()},
        "names": {str(i): printable(own_names[i]) for i in _all_rows(errors, issues)},
        "pairs": _co_occurrence(judged),
        "held_out": judged.source == "held_out",
        "csv": "" if issues is None else _csv(issues, own_names),
    }
    page = render_page(
        "imcc.inspection",
        "model",
        {},
        title=printable(title or describe(model)),
        kind=describe(model),
        judged=judged,
        has_rows=X is not None,
        summary=_summary(judged, labels),
        made_of=_made_of(model),
        labels=[{"name": printable(n), **one} for n, one in zip(judged.names, labels, strict=True)],
        issues=shown,
        n_issues=0 if issues is None else len(issues),
        data=embedded_json(data),
    )
    if path is not None:
        save(path, page.encode("utf-8", "replace"))
    return page


@dataclass(frozen=True)
class _Judged:
    """Labels and predictions of the rows that a page is about.

    Attributes
    ----------
    signs : ndarray of shape (n_samples, n_labels)
        +1 and -1; 0 where unknown, or where there is no prediction.
    values : ndarray of shape (n_samples, n_labels)
        Probabilities or scores; NaN where there are none.
    thresholds : ndarray of shape (n_labels,)
        A label is predicted if its value is at least this.
    names : tuple of str
    is_probability : bool
    source : {"held_out", "given"}
        Whether the values are held-out ones of the training rows, or those of given rows.
    """

    signs: np.ndarray
    values: np.ndarray
    thresholds: np.ndarray
    names: tuple[str, ...]
    is_probability: bool
    source: str

    @property
    def predicted(self) -> np.ndarray:
        """Where labels are predicted."""
        return (self.values >= self.thresholds) & (self.signs != 0)


def _judge(model: Any, X: Any, y: Any, label_names: Sequence[str] | None) -> _Judged:
    method = deciding_method(model)
    keeps = first_with(model, "held_out_proba_")
    if y is None and (X is not None or keeps is None):
        raise InvalidArgumentError(
            "y",
            "is needed: the true labels of the rows"
            if X is not None
            else f"and X are needed: {type(model).__name__} keeps no held-out probabilities; pass "
            "rows that it was not trained on",
        )
    if getattr(first_with(model, "target_kind_"), "target_kind_", "") == "multiclass":
        raise InvalidArgumentError(
            "model", "must be a multi-label or binary classifier, got one with several classes"
        )
    chances, kept = None, None
    if keeps is not None:
        chances, given = kept_probabilities(keeps)
        kept = np.where(np.isnan(given), 0.0, 2 * given - 1)
    if X is not None and (tables := first_with(model, "_true_labels")) is not None:
        y = tables._true_labels(X, y)
    if y is None:
        assert kept is not None
        signs, names = kept, names_of_labels(model, kept.shape[1], label_names)
    else:
        n_rows = len(y) if X is None else int(as_rows(X).shape[0])
        signs, names = signs_and_names(model, y, n_rows, label_names)
    count = signs.shape[1]
    if kept is not None and kept.shape[1] != count:
        raise InvalidArgumentError(
            "y", f"must have one column per label of the model, {kept.shape[1]}, got {count}"
        )
    thresholds = decision_thresholds(model, count)
    is_training = kept is not None and kept.shape == signs.shape and _agree(kept, signs)
    if X is None and not is_training:
        raise InvalidArgumentError(
            "X", "is needed with these labels: they are not those of the training rows"
        )
    is_probability = method == "predict_proba"
    if is_training and chances is not None:
        values = chances
    else:
        values = label_scores(model, X, count, method=method).astype(np.float64)
    signs = np.where(np.isnan(values), 0, signs)
    source = "held_out" if is_training else "given"
    return _Judged(signs, values, thresholds, names, is_probability, source)


def _agree(kept: np.ndarray, signs: np.ndarray) -> bool:
    """Whether labels are the training labels; rows of weight 0 have none there."""
    return bool(((kept == signs) | (kept == 0)).all())


def _prices(costs: Any, names: Sequence[str]) -> list[tuple[float, float]] | None:
    """Return the costs of a false positive and a false negative per label."""
    if costs is None:
        return None
    pairs = costs if isinstance(costs, Mapping) else dict.fromkeys(names, costs)
    if unknown := [name for name in pairs if name not in names]:
        raise InvalidArgumentError("costs", f"names labels that the model lacks: {unknown[:5]}")
    found = []
    for name in names:
        pair = pairs.get(name, (1.0, 1.0))
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise InvalidArgumentError(
                "costs", f"must be pairs (false positive, false negative), got {pair!r}"
            )
        for value in pair:
            check_number("costs", value, at_least=0)
        found.append((float(pair[0]), float(pair[1])))
    return found


def _number(value: float) -> float:
    return float(f"{value:.4g}")


# Numbers per label


def _labels(judged: _Judged, n_resamples: int, seed: int) -> list[dict[str, Any]]:
    """Return the numbers of each label, for the table and for the slider."""
    known, on, predicted = judged.signs != 0, judged.signs > 0, judged.predicted
    hits = on & predicted
    drawn = _resampled(judged, n_resamples, seed)
    found = []
    for j in range(on.shape[1]):
        rows = known[:, j]
        own_on, values = on[rows, j], judged.values[rows, j]
        support, n_predicted, tp = (int(a[:, j].sum()) for a in (on, predicted, hits))
        average = ranked_measures(own_on, values, np.ones((1, len(values))))[0][0]
        plain = {
            "precision": tp / n_predicted if n_predicted else np.nan,
            "recall": tp / support if support else np.nan,
            "f1": 2 * tp / (support + n_predicted) if support + n_predicted else np.nan,
            "average_precision": average if len(values) else np.nan,
        }
        measures = {
            name: estimate(float(value), drawn[name][:, j], tails_of(0.95))
            for name, value in plain.items()
        }
        found.append(
            {
                "support": support,
                "n": int(rows.sum()),
                "predicted": n_predicted,
                "hits": tp,
                "threshold": float(judged.thresholds[j]),
                **measures,
                "page": _curve(judged, own_on, values, float(judged.thresholds[j])),
            }
        )
    return found


def _resampled(judged: _Judged, n_resamples: int, seed: int) -> dict[str, np.ndarray]:
    """Return the measures of bootstrap resamples, (n_resamples, n_labels) each."""
    known, on, predicted = judged.signs != 0, judged.signs > 0, judged.predicted
    n, q = on.shape
    names = ("precision", "recall", "f1", "average_precision")
    found: dict[str, list[np.ndarray]] = {name: [np.empty((0, q))] for name in names}
    rng = np.random.default_rng(seed)
    for counts in resampled_counts(n, n_resamples, rng, get_config().sum_entries):
        tp, support, called = (counts @ a.astype(float) for a in (on & predicted, on, predicted))
        with np.errstate(invalid="ignore"):
            found["precision"].append(tp / called)
            found["recall"].append(tp / support)
            found["f1"].append(2 * tp / (support + called))
        average = np.empty((len(counts), q))
        for j in range(q):
            rows = known[:, j]
            average[:, j] = ranked_measures(on[rows, j], judged.values[rows, j], counts[:, rows])[0]
        found["average_precision"].append(average)
    return {name: np.concatenate(parts) for name, parts in found.items()}


def _curve(judged: _Judged, on: np.ndarray, values: np.ndarray, own: float) -> dict[str, Any]:
    """Return counts by threshold, with the model's own among them, and the calibration curve."""
    grid = _GRID
    if not judged.is_probability:
        grid = np.unique(np.quantile(values, np.linspace(0, 1, 101))) if len(values) else _GRID
    at = int(np.searchsorted(grid, own))
    grid = np.insert(grid, at, own)
    everything, positive = np.sort(values), np.sort(values[on])
    called = len(everything) - np.searchsorted(everything, grid, side="left")
    tp = len(positive) - np.searchsorted(positive, grid, side="left")
    page: dict[str, Any] = {
        "n": len(values),
        "support": len(positive),
        "own": _number(own),
        "at": at,
        "tp": tp.tolist(),
        "called": called.tolist(),
    }
    if judged.is_probability:
        page["bins"] = [[int(n), _number(p), _number(o)] for n, p, o in _bins(values, on) if n]
    else:
        page["grid"] = [_number(value) for value in np.delete(grid, at)]
    return page


def _bins(values: np.ndarray, on: np.ndarray) -> list[tuple[float, float, float]]:
    """Return the rows, the mean probability and the observed frequency of each bin."""
    at = np.minimum((values * _N_BINS).astype(int), _N_BINS - 1)
    counts, sums, hits = (
        np.bincount(at, weights=w, minlength=_N_BINS) for w in (np.ones(len(at)), values, on)
    )
    at_least_one = np.maximum(counts, 1)
    return list(zip(counts, sums / at_least_one, hits / at_least_one, strict=True))


# Errors, rows and suspect labels


def _errors(judged: _Judged) -> list[tuple[list[int], list[int]]]:
    """Return the worst false positives and false negatives of each label, as rows."""
    known, on, predicted = judged.signs != 0, judged.signs > 0, judged.predicted
    q = on.shape[1]
    each = int(np.clip(_ROWS // (2 * q), 1, _ERRORS))
    frequent = set(np.argsort(-on.sum(axis=0), kind="stable")[:_LABELS].tolist())
    found = []
    for j in range(q):
        lists = []
        for wrong, sign in ((predicted & ~on, -1.0), (on & ~predicted & known, 1.0)):
            rows = np.flatnonzero(wrong[:, j])
            order = np.argsort(sign * judged.values[rows, j], kind="stable")
            lists.append(rows[order][: each if j in frequent else 0].tolist())
        found.append((lists[0], lists[1]))
    return found


def _all_rows(errors: Any, issues: LabelIssues | None) -> list[int]:
    rows = {i for pair in errors for side in pair for i in side}
    return sorted(rows | (set() if issues is None else {int(i) for i in issues.rows[:_ISSUES]}))


def _cells(
    model: Any, X: Any, rows: list[int], feature_names: Sequence[str] | None
) -> tuple[list[str], int, list[list[str]]]:
    """Return the first columns that the model uses, how many it uses, and cells of some rows."""
    X = as_rows(X)
    longest, columns, count = _LONGEST, list[str](), 0
    cells: list[list[str]] = []
    for i in rows:
        row = take_rows(X, [i])
        mixer = make_mixer(model, row, row, feature_names)
        columns, count = [printable(name) for name in mixer.columns[:_COLUMNS]], len(mixer.columns)
        if not cells:
            longest = min(longest, _CHARACTERS // max(1, len(rows) * len(columns)))
        texts = [" ".join(text.split()) for text in values_of_row(mixer)[:_COLUMNS]]
        cells.append([_shortened(text, longest) for text in texts])
    return columns, count, cells


def _shortened(text: str, longest: int) -> str:
    text = printable(text)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _explanations(
    model: Any,
    X: Any,
    errors: list[tuple[list[int], list[int]]],
    count: int,
    judged: _Judged,
    feature_names: Sequence[str] | None,
    seed: int,
) -> dict[int, dict[str, Any]]:
    """Explain the worst errors of all labels in turn, until there are enough rows."""
    queue = [
        (place, j, rows[place])
        for place in range(_ERRORS)
        for j, pair in enumerate(errors)
        for rows in pair
        if place < len(rows)
    ]
    queue.sort(key=lambda one: one[0])
    rows = list(dict.fromkeys(i for _, _, i in queue))[:count]
    listed: dict[int, set[int]] = {}
    for j, pair in enumerate(errors):
        for i in (*pair[0], *pair[1]):
            listed.setdefault(i, set()).add(j)
    X = as_rows(X)
    if int(X.shape[0]) < 2:
        return {}
    found: dict[int, dict[str, Any]] = {}
    for number, i in enumerate(rows):
        one = explain_columns(
            model,
            take_rows(X, [i]),
            X,
            n_background=_BACKGROUND,
            max_evaluations=_EVALUATIONS,
            max_columns=_PARTS + 2,
            random_state=seed,
            label_names=judged.names,
            feature_names=feature_names,
        )
        found[i] = {
            str(j): [
                [printable(p.column), _shortened(p.value, 120), _number(p.contribution)]
                for p in one.parts(j, _PARTS)
            ]
            for j in sorted(listed[i])
        }
        report_progress(number + 1, len(rows))
    return found


def _issue_rows(issues: LabelIssues, row_names: Sequence[str]) -> list[dict[str, Any]]:
    table = zip(
        *(part[:_ISSUES] for part in (issues.rows, issues.labels, issues.given)),
        *(part[:_ISSUES] for part in (issues.probabilities, issues.scores)),
        strict=True,
    )
    return [
        {
            "row": int(row),
            "name": printable(row_names[int(row)]),
            "label": printable(label),
            "given": int(given),
            "probability": float(probability),
            "score": float(score),
        }
        for row, label, given, probability, score in table
    ]


def _csv(issues: LabelIssues, row_names: Sequence[str]) -> str:
    """Return the suspect labels for the button, with the names of rows that have any."""
    numbered = all(name == str(i) for i, name in enumerate(row_names))
    return issues.to_csv(None if numbered else row_names)


def _co_occurrence(judged: _Judged) -> dict[str, Any]:
    """Return how often pairs of labels are given and predicted together."""
    on, predicted = (judged.signs > 0).astype(float), judged.predicted.astype(float)
    shown = np.sort(np.argsort(-on.sum(axis=0), kind="stable")[:_SQUARE])
    given, called = on[:, shown].T @ on[:, shown], predicted[:, shown].T @ predicted[:, shown]
    return {
        "labels": shown.tolist(),
        "given": given.astype(int).tolist(),
        "predicted": called.astype(int).tolist(),
    }


# Words


def _percent(value: float) -> str:
    return "-" if np.isnan(value) else f"{100 * value:.0f} %"


def _summary(judged: _Judged, labels: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what the overview says."""
    known, on, predicted = judged.signs != 0, judged.signs > 0, judged.predicted
    tp, support, called = int((on & predicted).sum()), int(on.sum()), int(predicted.sum())
    used = known.any(axis=1)
    right = ((on == predicted) | ~known).all(axis=1)[used]
    recall, precision = tp / support if support else np.nan, tp / called if called else np.nan
    ranked = sorted(
        (j for j, label in enumerate(labels) if label["support"] and label["f1"].value >= 0),
        key=lambda j: -labels[j]["f1"].value,
    )
    cards = [
        ("Labels found", _percent(recall), f"{tp:,} of the {support:,} labels that rows have"),
        ("Predictions right", _percent(precision), f"{tp:,} of the {called:,} predicted labels"),
        (
            "Rows without any error",
            _percent(float(right.mean()) if len(right) else np.nan),
            f"{int(right.sum()):,} of {len(right):,} rows have all labels right",
        ),
    ]
    calibration = None
    if judged.is_probability and known.any():
        error, by_chance, sentence = _calibration_words(judged)
        cards.append(("Probabilities off by", f"{100 * error:.1f} points", sentence))
        calibration = {"error": error, "by_chance": by_chance}
    return {
        "rows": int(used.sum()),
        "unknown": int((~known).sum()) if used.all() else 0,
        "per_row": support / max(1, int(used.sum())),
        "cards": cards,
        "best": [(printable(judged.names[j]), labels[j]["f1"].value) for j in ranked[:3]],
        "worst": [(printable(judged.names[j]), labels[j]["f1"].value) for j in ranked[:2:-1][:3]],
        "never": [
            printable(judged.names[j])
            for j, label in enumerate(labels)
            if label["support"] and not label["predicted"]
        ],
        "verdict": _verdict(recall, precision),
        "calibration": calibration,
    }


def _verdict(recall: float, precision: float) -> str:
    """Return how good the model is, in words."""
    if np.isnan(recall):
        return "No row has any label, so that little can be said."
    if np.isnan(precision):
        return "The model predicts no label at all."
    found = _share_words(recall, "of the labels that rows have are found")
    right = _share_words(precision, "of the predicted labels are right")
    return f"{found[0].upper()}{found[1:]}, and {right}."


def _share_words(share: float, what: str) -> str:
    words = (
        *((0.98, "almost all"), (0.9, "nine out of ten"), (0.78, "about four out of five")),
        *((0.7, "about three quarters"), (0.6, "about two thirds"), (0.45, "about half")),
        *((0.3, "about a third"), (0.15, "about one in five")),
    )
    return f"{next((word for least, word in words if share >= least), 'few')} {what}"


def _calibration_words(judged: _Judged) -> tuple[float, float, str]:
    """Return the calibration error of all labels, that of perfect probabilities, and a sentence."""
    known = judged.signs != 0
    values, on = judged.values[known], (judged.signs > 0)[known]

    def error(truth: np.ndarray) -> float:
        bins = _bins(values, truth)
        return float(sum(n * abs(p - o) for n, p, o in bins) / len(values))

    own = error(on)
    rng = np.random.default_rng(0)
    chance = float(np.mean([error(rng.random(len(values)) < values) for _ in range(20)]))
    if own < 2 * chance + 0.01:
        sentence = "They mean what they say: of labels with 80 %, about 80 % are there"
    else:
        above = float((values - on).mean()) > 0
        sentence = "They are " + ("too high" if above else "too low") + " on average"
        if abs(float((values - on).mean())) < own / 3:
            sentence = "They are too sure, or not sure enough: see the curve of each label"
    return own, chance, sentence


def _made_of(model: Any) -> dict[str, Any]:
    """Return what the model consists of, in words."""
    ensemble = first_with(model, "members_")
    members = [
        {
            "weight": member["weight"],
            "view": _VIEWS.get(member["view"], member["view"]),
            "kernel": _KERNELS.get(member["kernel"], member["kernel"]),
        }
        for member in (ensemble.members_ if ensemble is not None else [])
    ]
    table = first_with(model, "schema_")
    kinds = {}
    if table is not None:
        for kind in ("number", "category", "text", "date"):
            if names := [printable(name) for name in table.schema_.of_kind(kind)]:
                kinds[kind] = names
    return {
        "members": members,
        "tried": len(ensemble.search_results_["score"]) if ensemble is not None else 0,
        "trees": len(getattr(ensemble, "trees_", None) or {}),
        "tuned": first_with(model, "thresholds_") is not None,
        "calibrated": first_with(model, "maps_") is not None,
        "kinds": kinds,
        "features": getattr(first_with(model, "n_features_in_"), "n_features_in_", None),
    }
