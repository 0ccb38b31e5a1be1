"""Whether calibration alone explains the differences between methods."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from imcc.comparison import ScoreTable, effect_size
from imcc_paper.reproduction.ranked import CALIBRATED, FEW, differences
from imcc_paper.reproduction.rows import CONTROL, TITLES, listed, prose, table
from imcc_paper.reproduction.tests import Tables

_WHY = (
    "Average precision, ranking loss and coverage compare the scores of different labels of one "
    "row, so a method whose scores of a label do not say how likely it is loses by that alone. "
    "IMCC, kernel ridge, LLSF and JFSC rank by least squares and MAHR by weighted votes of "
    "hypotheses: these have a calibrated form (Platt's sigmoid for each label, fitted to scores "
    "of held-out rows; see [](probabilities.md)). So should extra-trees, which score by the "
    "means of the leaves' shares and gain by calibration on all fifteen data sets "
    "([](probabilities.md)), but these experiments have no such rows: the lead over extra-trees "
    "is overstated. BRsvm, ECC and LIFT have Platt's sigmoid already, the ensemble calibrates "
    "its members, and logistic regression, LightGBM and XGBoost give log-odds of a likelihood "
    "that they maximize."
)


def calibration(tables: Tables) -> Iterator[str]:
    """Yield calibrated minus plain for each method, and what is left of the control's lead."""
    methods = next(iter(tables.values())).methods
    pairs = {name: plain for name, plain in CALIBRATED.items() if {name, plain} <= set(methods)}
    yield prose(_WHY)
    if not pairs:
        yield prose("No calibrated form has rows yet.")
        return
    yield prose(
        "Calibrated minus plain: mean over the data sets and splits that both have, with a 95 % "
        "interval (Student's t over data sets), in brackets the number of data sets on which the "
        "calibrated form is better. Of average precision more is better, of the others less."
    )
    rows = []
    for name, plain in pairs.items():
        cells = [_cell(scores, differences(scores, name, plain)) for scores in tables.values()]
        rows.append([plain, *cells])
    yield table(["method", *(TITLES[m] for m in tables)], rows)
    if CONTROL not in methods:
        return
    yield "\n" + prose(
        f"What is left of the lead of `{CONTROL}`: its mean difference from the plain method, from "
        "the calibrated form, with its 95 % interval, and the part of the lead that calibration "
        "explains, on the data sets and splits that all three have. Positive where "
        f"`{CONTROL}` is better."
    )
    for metric in ("average_precision", "ranking_loss"):
        found = [line for name in pairs if (line := _lead(tables[metric], pairs[name], name))]
        if found:
            yield f"**{TITLES[metric]}**\n"
            yield table(
                [
                    *("method", "data sets", "against the plain method"),
                    *("against the calibrated form", "better on", "explained"),
                ],
                found,
            )
            yield ""
    yield prose(_answer(tables["average_precision"], pairs))


def _cell(scores: ScoreTable, gap: np.ndarray) -> str:
    if len(gap) < FEW:
        return "too few data sets"
    size = effect_size(gap)
    wins = int((gap > 0).sum() if scores.greater_is_better else (gap < 0).sum())
    half = size.mean_interval[1] - size.mean
    return f"{size.mean:+.4f} ± {half:.4f} ({wins} of {len(gap)})"


def _leads(scores: ScoreTable, plain: str, name: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the lead over the plain method and over its calibrated form, by data set."""
    runs = scores.common_runs((CONTROL, plain, name))
    if len(runs.datasets) < FEW:
        return None
    sign = 1 if scores.greater_is_better else -1
    means = sign * runs.mean()
    return means[:, 0] - means[:, 1], means[:, 0] - means[:, 2]


def _lead(scores: ScoreTable, plain: str, name: str) -> list[str] | None:
    found = _leads(scores, plain, name)
    if found is None:
        return None
    before, after = found
    size = effect_size(after)
    half = size.mean_interval[1] - size.mean
    explained = 1 - after.mean() / before.mean() if before.mean() > 0 else np.nan
    return [
        plain,
        str(len(after)),
        f"{before.mean():+.4f}",
        f"{size.mean:+.4f} ± {half:.4f}",
        f"{int((after > 0).sum())} of {len(after)}",
        "no lead" if np.isnan(explained) else f"{100 * explained:.0f} %",
    ]


def _answer(scores: ScoreTable, pairs: dict[str, str]) -> str:
    """Return the answer in a sentence, from the intervals by average precision."""
    ahead, level = [], []
    for name, plain in pairs.items():
        found = _leads(scores, plain, name)
        if found is not None:
            (ahead if effect_size(found[1]).mean_interval[0] > 0 else level).append(name)
    text = "In short, by average precision: "
    if ahead:
        text += (
            f"calibration does not explain all of the lead over {listed(ahead)}, since the "
            "interval of what is left is above zero"
        )
    if level:
        text += ("; " if ahead else "") + (
            f"it may explain all of the lead over {listed(level)}, since that interval has zero"
        )
    return text + "."
