"""Options that several commands share, their types, and the examples in help texts.

Nothing here imports the packages that compute, so that help and completion are fast.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from imcc.cli._choices import CRITERIA, FORMATS, INDEX_BASES, NOMINAL, dataset_names

# The standard input where data are read, the standard output where they are written.
STDIN = "-"


def examples(*lines: str) -> str:
    r"""Return the examples of a command, for the end of its help.

    >>> examples("imcc datasets list")
    '\x08\nExamples:\n  imcc datasets list'
    """
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def changed_options(*names: str) -> list[str]:
    """Return those of some options that have another value than their default, as typed.

    An option whose default is spelled out is the same as one that is not given.

    Parameters
    ----------
    *names : str
        Names of arguments of the command that is running; ``table_tags``, not ``tags``.
    """
    context = click.get_current_context()
    unsaid = (click.core.ParameterSource.DEFAULT, click.core.ParameterSource.DEFAULT_MAP, None)
    options = {option.name: option for option in context.command.params}
    found = []
    for name in names:
        default = options[name].get_default(context)
        if isinstance(default, (str, int, float)):  # what stands for no default depends on click
            default = options[name].type_cast_value(context, default)
        given = context.get_parameter_source(name) not in unsaid
        if given and context.params[name] != default:
            found.append(max(options[name].opts, key=len))
    return found


def refuse_options(names: Sequence[str], purpose: str) -> None:
    """Raise an error for options that would have no effect.

    Parameters
    ----------
    names : sequence of str
        As for :func:`changed_options`.
    purpose : str
        What they are for: the end of a sentence.
    """
    for flag in changed_options(*names):
        raise click.UsageError(f"{flag} is for {purpose}, and would have no effect here")


class Numbers(click.ParamType):
    """Numbers with commas between them."""

    name = "A,B,..."

    def __init__(self, kind: Callable[[str], Any] = float) -> None:
        self.kind = kind

    def convert(self, value: Any, param: Any, context: Any) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return tuple(self.kind(part) for part in value.split(","))
        except ValueError:
            self.fail(f"{value!r} is not numbers with commas between them", param, context)


class Words(click.ParamType):
    """Some of a few words, with commas between them."""

    name = "A,B,..."

    def __init__(self, choices: tuple[str, ...]) -> None:
        self.choices = choices

    def convert(self, value: Any, param: Any, context: Any) -> Any:
        if not isinstance(value, str):
            return value
        words = tuple(value.split(","))
        if wrong := [word for word in words if word not in self.choices]:
            self.fail(f"{wrong[0]!r} is not one of {', '.join(self.choices)}", param, context)
        return words


class DataPath(click.ParamType):
    """The name of a data set, or a file; a shell completes both."""

    name = "NAME_OR_FILE"

    def shell_complete(self, context: Any, param: Any, incomplete: str) -> list[CompletionItem]:
        names = [name for name in dataset_names() if name.startswith(incomplete)]
        files = CompletionItem(incomplete, type="file")
        return [files, *(CompletionItem(name) for name in names)]


class _Labels(click.ParamType):
    """An XML file, a number of columns, or names with commas between them."""

    name = "XML|COUNT|NAMES"

    def convert(self, value: Any, _param: Any, _context: Any) -> Any:
        if not isinstance(value, str):
            return value
        if value.removeprefix("-").isdecimal():
            return int(value)
        if ".xml" in value.lower() or Path(value).is_file():
            return Path(value)
        return value.split(",")


class _Pair(click.ParamType):
    """Two names with a comma between them."""

    name = "DATA,TARGET"

    def convert(self, value: Any, param: Any, context: Any) -> Any:
        parts = tuple(str(value).split(","))
        if len(parts) != 2:
            self.fail(f"{value!r} is not two names with a comma between them", param, context)
        return parts


# How to read a file: the arguments of imcc.datasets.read, and the options that give them.
READING: dict[str, Callable[..., Any]] = {
    "labels": click.option(
        "--labels",
        type=_Labels(),
        help="Label columns: an XML file of MULAN, a number (the first columns; the last if "
        "negative) or names, a,b,c.",
    ),
    "label_prefix": click.option(
        "--label-prefix", help="Prefix of the names of the label columns."
    ),
    "format": click.option(
        "--format",
        type=click.Choice(FORMATS),
        help="Format of the input, if the file name does not determine it.",
    ),
    "nominal": click.option(
        "--nominal",
        type=click.Choice(NOMINAL),
        default="onehot",
        show_default=True,
        help="How to encode words that are neither yes nor no.",
    ),
    "variables": click.option(
        "--variables",
        type=_Pair(),
        multiple=True,
        help="Feature and label variable of a .mat or .npz file; may be repeated, the rows are "
        "stacked.",
    ),
    "transpose_labels": click.option(
        "--transpose-labels/--no-transpose-labels",
        default=None,
        help="Whether the label variable of a .mat or .npz file is labels x rows.  [default: "
        "determined by the shapes]",
    ),
    "delimiter": click.option("--delimiter", help="Delimiter of a CSV file."),
    "header": click.option(
        "--header/--no-header",
        default=True,
        show_default=True,
        help="Whether the first row of a CSV file has the column names.",
    ),
    "n_features": click.option(
        "--n-features", type=int, help="Number of features of an svmlight file."
    ),
    "index_base": click.option(
        "--index-base",
        type=click.Choice(INDEX_BASES),
        default="auto",
        show_default=True,
        help="Whether the feature indices of an svmlight file start at 0 or 1.",
    ),
    "encoding": click.option("--encoding", help="Encoding of a text file, if not UTF-8."),
    "member": click.option("--member", help="File in a .zip archive."),
    "max_bytes": click.option(
        "--max-bytes",
        type=click.IntRange(min=1),
        help="Maximum unpacked size of a compressed or Parquet file in bytes.  [default: 1 GiB, "
        "less for small files]",
    ),
}


def reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for reading files; those that are changed are passed as ``reading``."""

    @functools.wraps(command)
    def collecting(**arguments: Any) -> Any:
        every = {name: arguments.pop(name) for name in READING}
        every["variables"] = list(every["variables"])
        reading = {name: value for name, value in every.items() if changed_options(name)}
        return command(reading=reading, **arguments)

    for option in reversed(READING.values()):
        collecting = option(collecting)
    return collecting


JSON = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
QUIET = click.option("-q", "--quiet", is_flag=True, help="Print neither progress nor remarks.")
FORCE = click.option("--force", is_flag=True, help="Overwrite a file that already exists.")
RAW_CSV = click.option(
    "--raw-csv",
    is_flag=True,
    help="Write names to CSV unchanged. By default, a name that a spreadsheet would interpret as a "
    "formula is prefixed with an apostrophe.",
)

# Of the commands that read data.
INPUTS = click.argument(
    "inputs", metavar="NAME_OR_FILE...", type=DataPath(), nargs=-1, required=True
)

# Of the commands that make models.
OUTPUT = click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(),
    metavar="FILE",
    help="Model file to write (.skops).",
)
SEED = click.option(
    "--seed", type=int, default=0, show_default=True, help="Seed for clusterings and folds."
)
SCALE = click.option(
    "--scale", is_flag=True, help="Standardise every feature to mean 0 and standard deviation 1."
)
FILL = click.option(
    "--fill-missing", is_flag=True, help="Replace missing values by the mean of their column."
)
THRESHOLDS = click.option(
    "--thresholds",
    type=click.Choice((*CRITERIA, "none")),
    help="Choose the threshold of each label by cross-validation to optimise this criterion; none "
    "means score 0 or probability 1/2.  [default: none, but f1 for 'imcc tune' of a table, with "
    "the held-out scores of the ensemble]",
)
CALIBRATE = click.option(
    "--calibrate",
    is_flag=True,
    help="Calibrate the model: fit probabilities to the scores of held-out folds.",
)
FOLDS = click.option(
    "--folds",
    type=click.IntRange(min=2),
    default=5,
    show_default=True,
    help="Number of cross-validation folds.",
)

# Of the commands that use models.
MODEL = click.argument("model_file", metavar="MODEL", type=click.Path())
TRUST = click.option(
    "--trust",
    multiple=True,
    metavar="TYPE",
    help="Trust parts of this type, which is not from imcc, scikit-learn or NumPy; may be "
    "repeated.",
)
IGNORE = click.option(
    "--ignore-extra", is_flag=True, help="Ignore columns that the model does not use."
)

# Of the commands that compare methods.
CONTROL = click.option(
    "--control",
    help="Method that the others are compared with.  [default: imcc, if it is among them]",
)
ALPHA = click.option(
    "--alpha",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.05,
    show_default=True,
    help="Significance level.",
)
ROPE = click.option(
    "--rope",
    type=click.FloatRange(0),
    default=0.01,
    show_default=True,
    help="Differences up to this size are negligible in practice, in units of the metric.",
)
