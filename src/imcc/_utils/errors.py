"""Errors meant for users, in terms that suit both Python and the command line.

An error or a warning often names an argument: the one that is wrong, or one that would help.  In
Python that is ``labels=-3``, at the command line ``--labels -3``.  A :class:`Message` is a text
that remembers where in it arguments are named; it reads as Python would have it, and whoever
shows it elsewhere calls :meth:`Message.render` with other words.

>>> hint = "the file has no header; pass " + given("header", False) + " or " + given("labels")
>>> print(hint)
the file has no header; pass header=False or labels=
>>> hint.render(lambda argument: f"--{argument.name}")
'the file has no header; pass --header or --labels'
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Argument:
    """An argument that a message names.

    Attributes
    ----------
    name : str
        Its name in Python.
    value : object
        The value that it should have; None if the message names none.
    text : str or None
        In place of ``value``, a description of it that is shown as it is, such as ``"-k"``.
    is_subject : bool
        Whether the message names the argument (``labels``) or says to pass it (``labels=``).
    """

    name: str
    value: Any = None
    text: str | None = None
    is_subject: bool = False

    def __str__(self) -> str:
        if self.is_subject:
            return self.name
        value = "" if self.value is None else repr(self.value)
        return f"{self.name}={value if self.text is None else self.text}"


class Message(str):
    """A text that records which arguments it names; as a string it suits Python.

    Parameters
    ----------
    *parts : str or Argument
        What the text is made of.  Adding a str or another message gives a message.
    """

    parts: tuple[str | Argument, ...]

    def __new__(cls, *parts: str | Argument) -> Message:
        """Join the parts, those of other messages among them."""
        flat: list[str | Argument] = []
        for part in parts:
            flat += part.parts if isinstance(part, Message) else [part]
        message = super().__new__(cls, "".join(str(part) for part in flat))
        message.parts = tuple(flat)
        return message

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.parts

    def __add__(self, other: str) -> Message:
        return Message(self, other)

    def __radd__(self, other: str) -> Message:
        return Message(other, self)

    def render(self, show: Callable[[Argument], str]) -> str:
        """Return the text with every argument as ``show`` would have it."""
        return "".join(show(part) if isinstance(part, Argument) else part for part in self.parts)


def given(name: str, value: Any = None, *, text: str | None = None) -> Message:
    """Return an argument in the form in which it is passed.

    >>> print(given("labels"), given("header", False), given("labels", text="-k"))
    labels= header=False labels=-k
    """
    return Message(Argument(name, value, text))


def named(name: str) -> Message:
    """Return the name of an argument, for a message that names it.

    >>> print("there are fewer labels than " + named("n_labels") + " says")
    there are fewer labels than n_labels says
    """
    return Message(Argument(name, is_subject=True))


def message_of(error: BaseException) -> Message:
    """Return what an error or a warning says, and the arguments that it names, if recorded.

    >>> print(message_of(ValueError("no")))
    no
    """
    for part in (getattr(error, "message", None), *error.args):
        if isinstance(part, Message):
            return part
    return Message(str(error))


class ImccError(Exception):
    """Something that the user can mend: the base of all errors that imcc raises on purpose.

    What else comes out of it (a ``TypeError``, an ``IndexError``) is a mistake in imcc.

    Attributes
    ----------
    argument : str or None
        The name of the argument that is wrong, if it is one.
    """

    argument: str | None = None


class InvalidArgumentError(ImccError, ValueError):
    """An argument has a value that it cannot have.

    Parameters
    ----------
    argument : str
        Its name.
    problem : str
        What is wrong and what to do; read after the name.

    Examples
    --------
    >>> error = InvalidArgumentError("alpha", "must be a finite number >= 0, got -1")
    >>> print(error)
    alpha must be a finite number >= 0, got -1
    >>> error.argument
    'alpha'
    """

    def __init__(self, argument: str, problem: str) -> None:
        self.argument = argument
        self.problem = problem
        super().__init__(named(argument) + " " + problem)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.argument, self.problem)


class InvalidTypeError(InvalidArgumentError, TypeError):
    """An argument is of a type, or is an argument at all, that cannot be taken here.

    A ``TypeError`` for programs, and like :class:`InvalidArgumentError` the user's to mend.
    """
