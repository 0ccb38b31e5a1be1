"""A page about one model: how good it is, where it errs, and which labels look wrong."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from imcc._utils.errors import InvalidArgumentError
from imcc._utils.files import save
from imcc._utils.html import embedded_json, render_page
from imcc._utils.progress import part, report_progress
from imcc._utils.text import printable
from imcc._utils.validation import check_count, check_number
from imcc._utils.wrappers import describe, first_with
from imcc.estimators.cross_fit import deciding_method, label_scores
from imcc.estimators.thresholds import decision_thresholds
from imcc.inspection._bootstrap import LabelMeasures, estimate, measure_labels, resample_labels
from imcc.inspection._calibration import MEASURES, BinnedProbabilities
from imcc.inspection._columns import explain_columns
from imcc.inspection._label_issues import (
    LabelIssues,
    find_label_issues,
    kept_probabilities,
    signs_and_names,
)
from imcc.inspection._mixed import as_rows, row_texts, take_rows
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
    "tfidf": "words weighted by how rare they are",
    "columns": "the columns as they are",
}
_KERNELS = {
    "rbf": "smooth kernel",
    "laplacian": "rough kernel",
    "linear": "linear model",
    "trees": "boosted trees",
}


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
    check_count("n_resamples", n_resamples, at_least=0)
    shares = (1.0, 1.0, 3.0)
    with part(0, shares, "scoring rows"):
        rows = _evaluated_rows(model, X, y, label_names)
    n = len(rows.signs)
    own_names = [str(name) for name in (range(n) if row_names is None else row_names)]
    if len(own_names) != n:
        raise InvalidArgumentError("row_names", f"has {len(own_names)} entries for {n} rows")
    prices = _prices(costs, rows.names)
    with part(1, shares, "resampling"):
        labels = _labels(rows, n_resamples, random_state)
    issues = None
    if rows.are_probabilities:
        y_known = np.where(rows.known, rows.on, np.nan)
        issues = find_label_issues(rows.values, y_known, label_names=rows.names)
    errors = _errors(rows)
    listed = dict.fromkeys(i for pair in errors for side in pair for i in side)
    listed |= dict.fromkeys(map(int, issues.rows[:_ISSUES]) if issues is not None else ())
    contents: dict[int, dict[str, Any]] = {}
    columns, n_columns = list[str](), 0
    if X is not None:
        with part(2, shares, "explaining errors"):
            wanted = list(listed)[:_ROWS]
            columns, n_columns, cells = _cells(model, X, wanted, feature_names)
            contents = {i: {"cells": c} for i, c in zip(wanted, cells, strict=True)}
            why = _explanations(model, X, errors, n_explained, rows, feature_names, random_state)
        for i, parts in why.items():
            contents.setdefault(i, {})["why"] = parts
    data = {
        "labels": [
            {
                "name": label["name"],
                **_curve(rows, j),
                "cost": prices[j] if prices is not None else None,
                "fp": [[i, _number(rows.values[i, j])] for i in errors[j][0]],
                "fn": [[i, _number(rows.values[i, j])] for i in errors[j][1]],
            }
            for j, label in enumerate(labels)
        ],
        "grid": _GRID.tolist() if rows.are_probabilities else None,
        "columns": columns,
        "n_columns": n_columns,
        "rows": {str(i): row for i, row in contents.items()},
        "names": {str(i): printable(own_names[i]) for i in listed},
        "pairs": _co_occurrence(rows),
        "held_out": rows.are_held_out,
        "csv": "" if issues is None else issues.to_csv(own_names),
    }
    page = render_page(
        "imcc.inspection",
        "model",
        {},
        title=printable(title or describe(model)),
        kind=describe(model),
        rows=rows,
        has_rows=X is not None,
        summary=_summary(rows, labels),
        made_of=_made_of(model),
        labels=labels,
        issues=[] if issues is None else _issue_rows(issues, own_names),
        n_issues=0 if issues is None else len(issues),
        data=embedded_json(data),
    )
    if path is not None:
        save(path, page.encode("utf-8", "replace"))
    return page


@dataclass(frozen=True)
class _EvaluatedRows:
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
    are_probabilities : bool
        Whether the values are probabilities.
    are_held_out : bool
        Whether the values are held-out ones of the training rows, not those of given rows.
    """

    signs: np.ndarray
    values: np.ndarray
    thresholds: np.ndarray
    names: tuple[str, ...]
    are_probabilities: bool
    are_held_out: bool

    @property
    def known(self) -> np.ndarray:
        """Which labels are known."""
        return self.signs != 0

    @property
    def on(self) -> np.ndarray:
        """Which labels the rows have."""
        return self.signs > 0

    @property
    def predicted(self) -> np.ndarray:
        """Which of the known labels are predicted."""
        return (self.values >= self.thresholds) & self.known


def _evaluated_rows(
    model: Any, X: Any, y: Any, label_names: Sequence[str] | None
) -> _EvaluatedRows:
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
    are_held_out = (
        kept is not None
        and kept.shape == signs.shape
        # Rows of weight 0 have no labels there.
        and bool(((kept == signs) | (kept == 0)).all())
    )
    if X is None and not are_held_out:
        raise InvalidArgumentError(
            "X", "is needed with these labels: they are not those of the training rows"
        )
    if are_held_out and chances is not None:
        values = chances
    else:
        values = label_scores(model, X, count, method=method).astype(np.float64)
    return _EvaluatedRows(
        signs=np.where(np.isnan(values), 0, signs),
        values=values,
        thresholds=_finite(decision_thresholds(model, count), values, method == "predict_proba"),
        names=names,
        are_probabilities=method == "predict_proba",
        are_held_out=are_held_out,
    )


def _finite(thresholds: np.ndarray, values: np.ndarray, are_probabilities: bool) -> np.ndarray:
    """Return numbers for infinite thresholds, at which a label is always or never predicted."""
    low, high = (0.0, 1.0) if are_probabilities else (np.nanmin(values), np.nanmax(values))
    always, never = thresholds == -np.inf, thresholds == np.inf
    return np.where(always, low, np.where(never, np.nextafter(high, np.inf), thresholds))


def _prices(costs: Any, names: Sequence[str]) -> list[list[float]] | None:
    """Return the costs of a false positive and a false negative per label."""
    if costs is None:
        return None
    pairs = costs if isinstance(costs, Mapping) else dict.fromkeys(names, costs)
    if unknown := [name for name in pairs if name not in names]:
        raise InvalidArgumentError("costs", f"names labels that the model lacks: {unknown[:5]}")
    for pair in pairs.values():
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise InvalidArgumentError(
                "costs", f"must be pairs (false positive, false negative), got {pair!r}"
            )
    return [
        [check_number("costs", value, at_least=0) for value in pairs.get(name, (1, 1))]
        for name in names
    ]


def _number(value: float) -> float:
    return float(f"{value:.4g}")


# Numbers per label


def _labels(rows: _EvaluatedRows, n_resamples: int, seed: int) -> list[dict[str, Any]]:
    """Return the name and the numbers of each label, with intervals."""
    matrices = rows.on, rows.values, rows.predicted, rows.known
    counted = measure_labels(*matrices, np.ones((1, len(rows.signs))))
    measured = _shares(counted)
    drawn = _shares(resample_labels(*matrices, n_resamples, seed))
    return [
        {
            "name": printable(name),
            "support": int(counted.given[0, j]),
            "predicted": int(counted.predicted[0, j]),
            "threshold": float(rows.thresholds[j]),
            **{
                measure: estimate(float(values[0, j]), drawn[measure][:, j], 0.95)
                for measure, values in measured.items()
            },
        }
        for j, name in enumerate(rows.names)
    ]


def _shares(counted: LabelMeasures) -> dict[str, np.ndarray]:
    """Return the measures of the table of labels, NaN where undefined."""
    right, given, predicted, average_precision, _ = counted
    with np.errstate(invalid="ignore"):
        return {
            "precision": right / predicted,
            "recall": right / given,
            "f1": 2 * right / (given + predicted),
            "average_precision": average_precision,
        }


def _curve(rows: _EvaluatedRows, j: int) -> dict[str, Any]:
    """Return the counts of a label by threshold, with the model's own among the thresholds.

    For probabilities, also the calibration curve.
    """
    known, own = rows.signs[:, j] != 0, float(rows.thresholds[j])
    on, values = rows.signs[known, j] > 0, rows.values[known, j]
    grid = _GRID
    if not rows.are_probabilities and len(values):
        grid = np.unique(np.quantile(values, np.linspace(0, 1, 101)))
    at = int(np.searchsorted(grid, own))
    thresholds = np.insert(grid, at, own)
    n_called, n_right = (
        len(some) - np.searchsorted(np.sort(some), thresholds) for some in (values, values[on])
    )
    curve: dict[str, Any] = {
        "n": len(values),
        "support": int(on.sum()),
        "own": _number(own),
        "at": at,
        "tp": n_right.tolist(),
        "called": n_called.tolist(),
    }
    if not rows.are_probabilities:
        curve["grid"] = [_number(value) for value in grid]
    elif len(values):
        bins = zip(*(b[0] for b in _binned(on, values).reliability()), strict=True)
        curve["bins"] = [[int(n), _number(p), _number(o)] for n, p, o in bins if n]
    else:
        curve["bins"] = []
    return curve


def _binned(on: np.ndarray, values: np.ndarray) -> BinnedProbabilities:
    return BinnedProbabilities(on[:, np.newaxis], values[:, np.newaxis], _N_BINS)


# Errors, rows and suspect labels


def _errors(rows: _EvaluatedRows) -> list[tuple[list[int], list[int]]]:
    """Return the worst false positives and false negatives of each label, as indices of rows."""
    on, predicted = rows.on, rows.predicted
    q = on.shape[1]
    each = int(np.clip(_ROWS // (2 * q), 1, _ERRORS))
    frequent = set(np.argsort(-on.sum(axis=0), kind="stable")[:_LABELS].tolist())

    def worst(wrong: np.ndarray, j: int, sign: float) -> list[int]:
        places = np.flatnonzero(wrong[:, j])
        order = np.argsort(sign * rows.values[places, j], kind="stable")
        return places[order][: each if j in frequent else 0].tolist()

    return [(worst(predicted & ~on, j, -1.0), worst(on & ~predicted, j, 1.0)) for j in range(q)]


def _cells(
    model: Any, X: Any, rows: list[int], feature_names: Sequence[str] | None
) -> tuple[list[str], int, list[list[str]]]:
    """Return the first columns that the model uses, how many it uses, and cells of some rows."""
    if not rows:
        return [], 0, []
    columns, texts = row_texts(model, as_rows(X), rows, feature_names)
    shown = columns[:_COLUMNS]
    longest = min(_LONGEST, _CHARACTERS // max(1, len(rows) * len(shown)))
    cells = [
        [_shortened(" ".join(text.split()), longest) for text in row[:_COLUMNS]] for row in texts
    ]
    return [printable(name) for name in shown], len(columns), cells


def _shortened(text: str, longest: int) -> str:
    text = printable(text)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _explanations(
    model: Any,
    X: Any,
    errors: list[tuple[list[int], list[int]]],
    count: int,
    rows: _EvaluatedRows,
    feature_names: Sequence[str] | None,
    seed: int,
) -> dict[int, dict[str, Any]]:
    """Explain the worst errors of all labels in turn, until there are enough rows."""
    X = as_rows(X)
    if int(X.shape[0]) < 2:
        return {}
    in_turn = (side[k] for k in range(_ERRORS) for pair in errors for side in pair if k < len(side))
    chosen = list(dict.fromkeys(in_turn))[:count]
    found: dict[int, dict[str, Any]] = {}
    for number, i in enumerate(chosen):
        one = explain_columns(
            model,
            take_rows(X, [i]),
            X,
            n_background=_BACKGROUND,
            max_evaluations=_EVALUATIONS,
            max_columns=_PARTS + 2,
            random_state=seed,
            label_names=rows.names,
            feature_names=feature_names,
        )
        found[i] = {
            str(j): [
                [printable(p.column), _shortened(p.value, 120), _number(p.contribution)]
                for p in one.parts(j, _PARTS)
            ]
            for j, (false_positives, false_negatives) in enumerate(errors)
            if i in false_positives or i in false_negatives
        }
        report_progress(number + 1, len(chosen))
    return found


def _issue_rows(issues: LabelIssues, row_names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the suspect labels that the page shows."""
    return [
        {
            "row": int(issues.rows[k]),
            "name": printable(row_names[issues.rows[k]]),
            "label": printable(issues.labels[k]),
            "given": int(issues.given[k]),
            "probability": float(issues.probabilities[k]),
            "score": float(issues.scores[k]),
        }
        for k in range(min(len(issues), _ISSUES))
    ]


def _co_occurrence(rows: _EvaluatedRows) -> dict[str, Any]:
    """Return how often pairs of labels are given and predicted together."""
    shown = np.sort(np.argsort(-rows.on.sum(axis=0), kind="stable")[:_SQUARE])
    given, called = (matrix[:, shown].astype(float) for matrix in (rows.on, rows.predicted))
    return {
        "labels": shown.tolist(),
        "given": (given.T @ given).astype(int).tolist(),
        "predicted": (called.T @ called).astype(int).tolist(),
    }


# Words


def _percent(value: float) -> str:
    return "-" if np.isnan(value) else f"{100 * value:.0f} %"


def _summary(rows: _EvaluatedRows, labels: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what the overview says."""
    known, on, predicted = rows.known, rows.on, rows.predicted
    tp, support, called = int((on & predicted).sum()), int(on.sum()), int(predicted.sum())
    used = known.any(axis=1)
    right = ((on == predicted) | ~known).all(axis=1)[used]
    recall, precision = tp / support if support else np.nan, tp / called if called else np.nan
    ranked = sorted(
        (label for label in labels if label["support"] and label["f1"].value >= 0),
        key=lambda label: -label["f1"].value,
    )
    named = [(label["name"], label["f1"].value) for label in ranked]
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
    if rows.are_probabilities and known.any():
        on, values = on[known], rows.values[known]
        binned = _binned(on, values)
        error = float(binned.measures[MEASURES.index("calibration_error"), 0])
        by_chance = float(binned.by_chance(np.random.default_rng(0))[0])
        too_high = float((values - on).mean())
        if error < 2 * by_chance + 0.01:
            sentence = "They mean what they say: of labels with 80 %, about 80 % are there"
        elif abs(too_high) < error / 3:
            sentence = "They are too sure, or not sure enough: see the curve of each label"
        else:
            sentence = f"They are too {'high' if too_high > 0 else 'low'} on average"
        cards.append(("Probabilities off by", f"{100 * error:.1f} points", sentence))
        calibration = {"error": error, "by_chance": by_chance}
    if np.isnan(recall):
        verdict = "No row has any label, so that little can be said."
    elif np.isnan(precision):
        verdict = "The model predicts no label at all."
    else:
        start = _share_words(recall, "of the labels that rows have are found")
        verdict = f"{start[0].upper()}{start[1:]}, and "
        verdict += f"{_share_words(precision, 'of the predicted labels are right')}."
    return {
        "rows": int(used.sum()),
        "unknown": int((~known).sum()) if used.all() else 0,
        "per_row": support / max(1, int(used.sum())),
        "cards": cards,
        "best": named[:3],
        "worst": named[:2:-1][:3],
        "never": [label["name"] for label in labels if label["support"] and not label["predicted"]],
        "verdict": verdict,
        "calibration": calibration,
    }


def _share_words(share: float, what: str) -> str:
    words = (
        *((0.98, "almost all"), (0.9, "nine out of ten"), (0.78, "about four out of five")),
        *((0.7, "about three quarters"), (0.6, "about two thirds"), (0.45, "about half")),
        *((0.3, "about a third"), (0.15, "about one in five")),
    )
    return f"{next((word for least, word in words if share >= least), 'few')} {what}"


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
        "tuned": first_with(model, "thresholds_") is not None,
        "calibrated": first_with(model, "maps_") is not None,
        "kinds": kinds,
        "features": getattr(first_with(model, "n_features_in_"), "n_features_in_", None),
    }
