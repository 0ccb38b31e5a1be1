"""What several commands show: the columns of a table, and the parameters of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from imcc.cli._terminal import print_table, shorten

if TYPE_CHECKING:
    from imcc.persistence._card import ModelCard
    from imcc.tables import Schema

# Parameters that are always shown, even if they have their default values.
_ALWAYS = ("n_clusters", "alpha", "beta", "gamma", "kernel", "width_scale")
# Maximum number of columns that are listed individually.
_MOST_SHOWN = 40


def print_schema(schema: Schema, title: str, drop: tuple[str, ...] = ()) -> None:
    """Print the columns and how they are encoded; if there are many, their numbers per kind."""
    if len(schema) > _MOST_SHOWN:
        _print_kinds(schema, title)
        return
    rows = []
    for column in schema:
        missing = f"{column.missing / max(column.n_rows, 1):.1%}" if column.missing else "-"
        if column.spelled:
            missing += f" ({column.spelled} as words)"
        kind = f"{column.kind} (as you say)" if column.overruled else column.kind
        examples = shorten(", ".join(column.examples))
        rows.append((column.name, kind, missing, examples, column.becomes))
    rows += [(name, "-", "-", "", "left out (as you say)") for name in drop]
    print_table(title, ("column", "kind", "missing", "examples", "what becomes of it"), rows)


def _print_kinds(schema: Schema, title: str) -> None:
    groups: dict[tuple[str, str], list[Any]] = {}
    for column in schema:
        groups.setdefault((column.kind, column.becomes), []).append(column)
    rows = []
    for (kind, becomes), columns in groups.items():
        names = ", ".join(column.name for column in columns[:3]) + (", ..." * (len(columns) > 3))
        missing = sum(column.missing for column in columns)
        share = missing / max(sum(column.n_rows for column in columns), 1)
        rows.append((len(columns), names, kind, f"{share:.1%}" if missing else "-", becomes))
    print_table(title, (">columns", "called", "kind", "missing", "what becomes of them"), rows)


def shown_setting(card: ModelCard) -> dict[str, str]:
    """Return the parameters of a model to show; most only if they differ from the default."""
    from imcc._utils.plain import to_plain
    from imcc.estimators import IMCCClassifier, KernelEnsembleClassifier

    ensemble = "KernelEnsembleClassifier" in card.model
    kind = KernelEnsembleClassifier if ensemble else IMCCClassifier
    always = ("scoring", "n_members") if ensemble else _ALWAYS
    defaults = to_plain(kind().get_params(deep=False))
    return {
        name: f"{value:g}" if isinstance(value, float) else str(value)
        for name, value in card.params.items()
        if value is not None and (name in always or name not in defaults or value != defaults[name])
    }
