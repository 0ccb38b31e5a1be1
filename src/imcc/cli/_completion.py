"""``imcc completion``: the script that makes a shell complete commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from imcc.cli._help import examples

SHELLS = ("bash", "zsh", "fish")


@click.command(
    epilog=examples(
        "imcc completion bash > ~/.local/share/bash-completion/completions/imcc",
        'eval "$(imcc completion zsh)"',
        "imcc completion fish > ~/.config/fish/completions/imcc.fish",
    )
)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script with which a shell completes imcc's commands and options.

    Put it where your shell looks for such scripts (see the examples), and open a new terminal.
    """
    kind = get_completion_class(shell)
    assert kind is not None
    root = context.find_root().command
    # Not .source(): for bash it would run bash to ask for its version.
    made = kind(root, {}, "imcc", "_IMCC_COMPLETE")
    click.echo(made.source_template % made.source_vars())
