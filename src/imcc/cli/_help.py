"""Help: examples under every command, and a table of contents at the root."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

# The root's commands under headings, in the order of a day's work.  Commands that are not named
# here come under the last heading.
CONTENTS: dict[str, Sequence[str]] = {
    "Models": ("tune", "fit", "inspect", "predict", "evaluate"),
    "Data": ("datasets",),
    "Science": ("experiment", "sensitivity", "compare", "report"),
    "More": ("demo", "completion"),
}


def examples(*lines: str) -> str:
    r"""Return the examples of a command, for the end of its help.

    >>> examples("imcc datasets list")
    '\x08\nExamples:\n  imcc datasets list'
    """
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


class Contents(click.Group):
    """A group that lists its commands under headings."""

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, heading by heading."""
        there = {name: self.get_command(context, name) for name in self.list_commands(context)}
        named = {name for names in CONTENTS.values() for name in names}
        *_, last = CONTENTS
        # The width that the longest name of all takes: the headings' columns line up.
        width = max((len(name) for name in there), default=0)
        for heading, names in CONTENTS.items():
            wanted = [name for name in names if name in there]
            if heading == last:
                wanted += [name for name in there if name not in named]
            rows = [(name.ljust(width), _summary(there[name])) for name in wanted]
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


def _summary(command: Any) -> str:
    return command.get_short_help_str(limit=70) if command is not None else ""
