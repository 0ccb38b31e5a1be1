"""Errors for users, with messages for both Python and the command line.

Errors and warnings often name an argument: the one that is wrong, or one that would help.  In
Python this is ``labels=-3``, at the command line ``--labels -3``.  A :class:`Message` is a string
that records the arguments it names.  As a string, it uses the notation of Python;
:meth:`Message.render` converts it to another one.

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
        Name in Python.
    value : object, default=None
        The value to pass; None if the message contains none.
    text : str or None, default=None
        A description of the value, such as ``"-k"``, instead of ``value``.
    is_subject : bool, default=False
        Whether the message names the argument (``labels``) or tells to pass it (``labels=``).
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
    """A string that records the arguments it names, in the notation of Python.

    Parameters
    ----------
    *parts : str or Argument
        Parts of the text.  Adding a string or a message gives a message.
    """

    parts: tuple[str | Argument, ...]

    def __new__(cls, *parts: str | Argument) -> Message:
        """Join the parts, including those of other messages."""
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
        """Return the text with each argument formatted by ``show``."""
        return "".join(show(part) if isinstance(part, Argument) else part for part in self.parts)


def given(name: str, value: Any = None, *, text: str | None = None) -> Message:
    """Return an argument as it is passed, for a message.

    >>> print(given("labels"), given("header", False), given("labels", text="-k"))
    labels= header=False labels=-k
    """
    return Message(Argument(name, value, text))


def named(name: str) -> Message:
    """Return the name of an argument, for a message.

    >>> print("there are fewer labels than " + named("n_labels") + " says")
    there are fewer labels than n_labels says
    """
    return Message(Argument(name, is_subject=True))


def message_of(error: BaseException) -> Message:
    """Return the message of an error or a warning, with the arguments that it records.

    >>> print(message_of(ValueError("no")))
    no
    """
    for part in (getattr(error, "message", None), *error.args):
        if isinstance(part, Message):
            return part
    return Message(str(error))


class ImccError(Exception):
    """Base class of the errors of imcc that users can correct.

    Attributes
    ----------
    argument : str or None
        Name of the invalid argument, if the error is about one.
    """

    argument: str | None = None


class InvalidArgumentError(ImccError, ValueError):
    """Raised if an argument has an invalid value.

    Parameters
    ----------
    argument : str
        Name of the argument.
    problem : str
        What is wrong and what to do; follows the name in the message.

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
    """Raised if an argument has an invalid type, or is not an argument of the function.

    It is a ``TypeError`` and an :class:`InvalidArgumentError`.
    """
