"""``imcc inspect --row``: explanation of the scores of a row by the columns of its table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from imcc._utils.errors import InvalidArgumentError, given
from imcc._utils.progress import progress_reported_to
from imcc._utils.text import printable
from imcc.cli._inputs import load_matching
from imcc.cli._progress import working
from imcc.cli._tables import are_tables, table_model, table_rows
from imcc.cli._terminal import print_wide_table, say, stdout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from imcc.inspection import ColumnAttribution, RowReport
    from imcc.persistence import ModelCard

# Nearest rows that are described in words where a model has no clusters.
_NEIGHBOURS = 30
# Characters of a bar on either side, and of a value at most.
_HALF, _LONGEST_VALUE, _LONGEST_NAME = 10, 30, 30
_SHOWN_COLUMNS, _LONGEST_CELL = 3, 18


@dataclass(frozen=True)
class Rows:
    """Rows that were read, with what is known about them.

    Attributes
    ----------
    X : table, array or sparse matrix
    Y : array or None
        Their labels, if they are known.
    path : str
        How to call them.
    is_training : bool or None
        Whether they are the training data; None if that cannot be said.
    """

    X: Any
    Y: Any
    path: str
    is_training: bool | None

    def named(self) -> str:
        """Return how to call the rows, and whether they are the training data."""
        remark = {
            True: ", the training data",
            False: ", not the training data",
            None: ", not known to be the training data",
        }[self.is_training]
        return self.path + remark


def read_rows(
    model: Any, card: ModelCard, inputs: tuple[str, ...], reading: dict[str, Any]
) -> Rows:
    """Read rows for a model; for a table, determine whether it is the training data."""
    inner = table_model(model)
    path = ", ".join(inputs)
    if inner is None or not are_tables(inputs, reading):
        X, _ = load_matching(
            inputs, reading, card, with_labels=False, ignore_extra=True, model=model
        )
        return Rows(X, None, path, None)
    from imcc.tables._read import table_fingerprint

    X, _, source = table_rows(model, card, inputs, reading, with_labels=False, ignore_extra=True)
    is_training = None
    if card.fingerprint:
        is_training = table_fingerprint(source.table) == card.fingerprint
    labels = source.labels_of(inner, unknown=inner.unknown_labels) == 1 if is_training else None
    return Rows(X, labels, source.path, is_training)


def find_row(model: Any, X: Any, row: str) -> int:
    """Return the index of a row, given by its index or id."""
    tables = table_model(model)
    ids = [] if tables is None else tables.schema_.of_kind("id")
    for name in ids:
        if name in X.column_names:
            found = [i for i, value in enumerate(X[name].to_pylist()) if str(value) == row]
            if len(found) == 1:
                return found[0]
            if found:
                numbers = ", ".join(map(str, found[:5])) + (", ..." if len(found) > 5 else "")
                raise InvalidArgumentError(
                    "row",
                    f"is {row!r}, and {len(found)} rows are called so in {name!r}: give the number "
                    f"of one of them, counted from 0: {numbers}",
                )
    if not row.isdecimal():
        known = f", nor a value of {' or '.join(map(repr, ids))}" if ids else ""
        raise InvalidArgumentError("row", f"is {row!r}, which is no number counted from 0{known}")
    if int(row) >= X.shape[0]:
        raise InvalidArgumentError(
            "row", f"is {row}, but there is no row {row}: there are {X.shape[0]}, counted from 0"
        )
    return int(row)


def one_row(X: Any, number: int) -> Any:
    """Return one row of a table, an array or a sparse matrix, as the same."""
    if hasattr(X, "take") and hasattr(X, "num_rows"):  # a table
        return X.take([number])
    return X.iloc[[number]] if hasattr(X, "iloc") else X[[number]]


def report_row(
    model: Any,
    card: ModelCard,
    rows: Rows,
    training: Rows | None,
    background: Rows | None,
    row: str,
    *,
    labels: tuple[str, ...],
    n_nearest: int,
    has_clusters: bool,
    sizes: dict[str, Any],
    quiet: bool,
) -> RowReport:
    """Explain the scores of a row by its columns, with the rows around it.

    ``sizes`` are ``n_background``, ``max_evaluations``, ``max_columns`` and ``random_state`` of
    :func:`imcc.inspection.explain_columns`.
    """
    from imcc import inspection

    number = find_row(model, rows.X, row)
    x = one_row(rows.X, number)
    compared = background or training or rows
    if compared is rows and rows.X.shape[0] < 2:
        raise InvalidArgumentError(
            "background",
            "is needed: there is only one row, and nothing to compare it with. Pass the training "
            "data with " + given("data") + ", or other rows with " + given("background"),
        )
    names: dict[str, Any] = {"feature_names": None}
    if not hasattr(rows.X, "columns"):  # an array, whose names are in the card
        names["feature_names"] = card.feature_names or None
    with working("scoring mixed rows", quiet=quiet) as report, progress_reported_to(None):
        attribution = inspection.explain_columns(
            model, x, compared.X, label_names=card.label_names, progress=report, **names, **sizes
        )
    if labels:
        attribution = attribution.select(labels)
    around = training or background or rows
    # The training data may have been named twice: as the rows, and with --data.
    same = around is rows or (rows.is_training is True and around.is_training is True)
    itself = [number] if same else []
    nearest, group, group_name = None, None, ""
    if around.X.shape[0] > len(itself):
        with (
            working("looking for the nearest rows", quiet=quiet) as report,
            progress_reported_to(None),
        ):
            nearest = inspection.nearest_rows(
                model,
                x,
                around.X,
                around.Y,
                n_nearest=max(_NEIGHBOURS, n_nearest),
                names=_ids(model, around.X),
                label_names=card.label_names,
                leave_out=itself,
                progress=report,
                **names,
            )
        if has_clusters and training is not None:
            cluster, members = inspection.cluster_of(model, x)
            group_name = f"its cluster (number {cluster}, {len(members):,} training rows)"
            group = inspection.describe_group(model, training.X, members, **names)
        elif len(nearest.rows) == _NEIGHBOURS < around.X.shape[0] / 2:
            group_name = f"the {_NEIGHBOURS} nearest rows"
            group = inspection.describe_group(model, around.X, list(nearest.rows), **names)
        nearest = nearest.first(n_nearest)
    count = f"{attribution.n_background:,}"
    if attribution.n_background < attribution.n_rows:
        count += f" of {attribution.n_rows:,}"
    return inspection.RowReport(
        name=row,
        attribution=attribution,
        background=f"{count} rows of {compared.named()}",
        nearest=nearest,
        nearest_in=around.named(),
        group=group,
        group_name=group_name,
    )


def _ids(model: Any, X: Any) -> list[Any] | None:
    tables = table_model(model)
    names = [] if tables is None else tables.schema_.of_kind("id")
    return next((X[name].to_pylist() for name in names if name in X.column_names), None)


def training_rows(training: Any, inputs: tuple[str, ...]) -> Rows | None:
    """Return the training data, which have been checked, as rows."""
    if training is None:
        return None
    path = ", ".join(inputs)
    return Rows(training.X, training.Y, Path(path).name if len(inputs) == 1 else path, True)


def print_report(report: RowReport, wanted: tuple[str, ...], top: int) -> None:
    """Print the explanation of a row."""
    found = report.attribution
    for label in wanted or (found.index(),):
        _print_label(report, found.index(label), top)
    others = sorted(
        (j for j in range(len(found.label_names))),
        key=lambda j: float(found.thresholds[j] - found.scores[j]),
    )
    if not wanted and len(others) > 1:
        shown = ", ".join(
            f"{found.label_names[j]} {found.scores[j]:+.3f}"
            f"{' (predicted)' if found.predicted(j) else ''}"
            for j in others[:6]
        )
        more = f" and {len(others) - 6} more" if len(others) > 6 else ""
        say(f"Scores: {shown}{more}; choose one with --label\n")
    say(f"Background: {report.background}")
    say(f"{found.how()}; +/-: one standard error\n")
    if report.group is not None:
        say(f"Description of {report.group_name}: {' '.join(str(report.group).split())}\n")
    if report.nearest is not None and report.nearest.rows:
        _print_nearest(report, found)


def _print_label(report: RowReport, j: int, top: int) -> None:
    found = report.attribution
    verdict = "predicted" if found.predicted(j) else "not predicted"
    say(
        f"Row {report.name}, {found.label_names[j]}: {found.scale} {found.scores[j]:+.3f}, "
        f"{verdict} (from {found.thresholds[j]:+.3f} on)"
    )
    parts = found.parts(j, top)
    lines = [
        (part.column, part.value, part.contribution, f"{part.standard_error:.3f}") for part in parts
    ]
    if others := len(found.columns) - len(parts):
        rest = float(found.contributions[:, j].sum()) - sum(part.contribution for part in parts)
        lines.append((f"{others} others together", "", rest, ""))
    reach = max((abs(size) for _, _, size, _ in lines), default=0.0)
    rows = [
        ("background mean", "", f"{found.baseline[j]:+.3f}", "", ""),
        *(
            (name, value, signed_number(size), error, signed_bar(size, reach, _HALF))
            for name, value, size, error in lines
        ),
        (f"the {found.scale}", "", f"{found.scores[j]:+.3f}", "", ""),
    ]
    _print_lines(("column", "value", "adds", "+/-", ""), rows)


def signed_number(value: float) -> str:
    """Return a number with its sign; what rounds to zero has a plus, whichever side it is on."""
    return f"{round(value, 3) + 0.0:+.3f}"


def signed_bar(value: float, reach: float, half: int) -> str:
    """Return a bar from the middle: to the left if negative, to the right if positive.

    >>> signed_bar(-0.5, 1.0, 4), signed_bar(1.0, 1.0, 4), signed_bar(0.0, 1.0, 4)
    ('  --|', '    |++++', '    |')
    """
    size = round(half * abs(value) / reach) if reach > 0 else 0
    return f"{('-' * size).rjust(half)}|" if value < 0 else f"{' ' * half}|{'+' * size}"


def _print_lines(headings: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """Print columns side by side: words to the left, numbers to the right, bars as they are.

    A table of rich's would move the bars.
    """
    from rich.cells import cell_len

    # Numbers, errors, bars and gaps take 42 columns of the terminal.
    room = max(20, stdout().width - 2 * _HALF - 22)
    name_width = min(max(len(row[0]) for row in rows), max(10, room // 2), _LONGEST_NAME)
    longest = (name_width, min(room - name_width, _LONGEST_VALUE))
    shown = [
        [_short(cell, longest[k]) if k < 2 else cell for k, cell in enumerate(row)] for row in rows
    ]
    widths = [
        max(cell_len(row[k]) for row in [list(headings), *shown]) for k in range(len(headings))
    ]
    for row in [list(headings), *shown]:
        cells = []
        for k, cell in enumerate(row):
            gap = " " * (widths[k] - cell_len(cell))
            cells.append(gap + cell if k in (2, 3) else cell + gap)
        say("  ".join(cells).rstrip())
    say("")


def _short(text: str, longest: int) -> str:
    text = printable(" ".join(text.split()))
    return text if len(text) <= longest else text[: longest - 3] + "..."


def _print_nearest(report: RowReport, found: ColumnAttribution) -> None:
    """Print the nearest rows: the columns that matter most first."""
    nearest = report.nearest
    assert nearest is not None
    matters = [part.column for part in found.parts()]
    order = sorted(
        range(len(nearest.columns)),
        key=lambda k: (
            matters.index(nearest.columns[k]) if nearest.columns[k] in matters else len(matters)
        ),
    )[:_SHOWN_COLUMNS]
    headings = [("row", "left"), ("feature distance", "right")]
    headings += [("labels", "left")] if nearest.labels is not None else []
    headings += [(nearest.columns[k], "left") for k in order]
    rows = []
    for i, name in enumerate(nearest.names):
        cells = [name, f"{nearest.distances[i]:.3g}"]
        if nearest.labels is not None:
            cells.append(", ".join(nearest.labels[i]) or "none")
        cells += [_short(nearest.values[i][k], _LONGEST_CELL) for k in order]
        rows.append(cells)
    left_out = len(nearest.columns) - len(order)
    print_wide_table(f"The nearest rows of {report.nearest_in}", headings, rows)
    if left_out:
        say(f"{left_out} more column(s) of these rows: --json or --html")
