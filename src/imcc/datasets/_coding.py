"""Encoding of the columns of a file, so that another file can be encoded in the same way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from imcc._utils.plain import to_plain


@dataclass(frozen=True)
class Coding:
    """Encoding of the columns of a file as features.

    Attributes
    ----------
    codes : dict of str to dict of str to float, default={}
        For each feature that is a column of words, the number of each word.  Columns whose words
        are numbers that stand for themselves have no entry.
    indicators : dict of str to (str, str), default={}
        For each feature that indicates a word of a column, the column and the word.
    left_out : tuple of str, default=()
        Columns of the file that are neither features nor labels.
    index_base : {0, 1} or None, default=None
        Index of the first feature of an svmlight file; None for other files.
    """

    codes: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    indicators: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    index_base: int | None = None

    def __post_init__(self) -> None:
        if self.index_base not in (None, 0, 1):
            raise ValueError(f"index_base must be 0, 1 or None, got {self.index_base!r}")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, from which :meth:`from_dict` restores the encoding."""
        plain: dict[str, Any] = to_plain(self)
        return plain

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Coding:
        """Restore an encoding from the result of :meth:`to_dict`.

        Parameters
        ----------
        content : mapping

        Returns
        -------
        Coding

        Raises
        ------
        ValueError
            If the values are invalid.

        Examples
        --------
        >>> coding = Coding({"wet": {"no": 0.0, "yes": 1.0}}, {"hue=red": ("hue", "red")}, ("id",))
        >>> Coding.from_dict(coding.to_dict()) == coding
        True
        """
        try:
            return cls(
                {
                    str(name): {str(word): float(value) for word, value in code.items()}
                    for name, code in content.get("codes", {}).items()
                },
                {
                    str(name): (str(column), str(word))
                    for name, (column, word) in content.get("indicators", {}).items()
                },
                tuple(str(name) for name in content.get("left_out", ())),
                content.get("index_base"),
            )
        except (AttributeError, TypeError, ValueError) as error:
            raise ValueError(f"this is not a valid encoding of columns: {error}") from error


def number(word: str, otherwise: float | None = None) -> float | None:
    """Return the number that a word is, or another value if it is none.

    >>> number("-1.5"), number("wren")
    (-1.5, None)
    """
    try:
        return float(word)
    except ValueError:
        return otherwise
