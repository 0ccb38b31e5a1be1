"""Known and possible errors in the tables and the text of the paper.

The tables have three decimals.  Methods with equal printed values need not be equal, so a statistic
that depends on their order is proven wrong only if no order gives it;
:func:`friedman_range` computes the possible values of one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Slip:
    """A known or possible error in the paper.

    Attributes
    ----------
    where : str
        The table, or "text".
    what : str
        Name of the quantity.
    printed : object
        The printed value.
    correct : object
        The correct value; None if unknown.  If ``proven`` is False, the value that follows from the
        printed means if means that are equal in print are equal.
    why : str
        Explanation.
    metric, dataset, method : str or None
        The cell that is affected, if any.
    proven : bool
        Whether the printed value is proven wrong.  If False, it may be right if some means that are
        equal in print are not equal.
    interval : (float, float) or None
        Range of the quantity over all orders of the means that are equal in print.
    """

    where: str
    what: str
    printed: Any
    correct: Any
    why: str
    metric: str | None = None
    dataset: str | None = None
    method: str | None = None
    proven: bool = True
    interval: tuple[float, float] | None = None


_DATA = "counted in the data, with which all other columns agree"
_TIE = "equal printed means; the rank is not the shared one, and may come from more decimals"


def _table_2(dataset: str, what: str, printed: Any, correct: Any) -> Slip:
    return Slip("Table 2", what, printed, correct, _DATA, dataset=dataset)


def _rank(
    where: str, metric: str, dataset: str, method: str, printed: int, correct: int, why: str = _TIE
) -> Slip:
    return Slip(where, "rank", printed, correct, why, metric, dataset, method, why != _TIE)


def _friedman(
    metric: str, printed: float, shared: float, low: float, high: float, proven: bool
) -> Slip:
    why = (
        f"the printed means give {shared} if those that are equal in print share their ranks, and "
        f"{low} to {high} over all orders of them: "
        + ("none gives the printed value" if proven else "the printed value is possible")
    )
    return Slip(
        "Table 5",
        "F_F",
        printed,
        None if proven else shared,
        why,
        metric=metric,
        proven=proven,
        interval=(low, high),
    )


def _failed(where: str, dataset: str, *methods: str) -> list[Slip]:
    why = (
        "a standard deviation of 0.085 or more over ten splits, where other methods have 0.02: "
        "failed runs are among the ten"
    )
    return [
        Slip(where, "failed runs", None, None, why, dataset=dataset, method=method)
        for method in methods
    ]


#: Known (``proven``) and possible errors in the paper.  The tables of this project are as printed,
#: without corrections.
SLIPS: tuple[Slip, ...] = (
    _table_2("scene", "n_labels", 5, 6),
    _table_2("yeast", "density", 0.300, 0.303),
    _table_2("arts", "label_set_proportion", 0.924, 0.092),
    _table_2("education", "density", 0.443, 0.044),
    *(
        _table_2(name, "feature_type", "nominal", "numeric")
        for name in ("computer", "education", "health", "social", "society")
    ),
    _rank("Table 3", "one_error", "cal500", "jfsc", 4, 3),
    _rank("Table 3", "one_error", "genbase", "mahr", 2, 1),
    _rank("Table 3", "one_error", "genbase", "llsf", 3, 1),
    _rank("Table 3", "hamming_loss", "cal500", "jfsc", 4, 3),
    _rank("Table 3", "hamming_loss", "image", "lift", 1, 3, "IMCC's 0.148 is below LIFT's 0.181"),
    _rank("Table 3", "ranking_loss", "genbase", "llsf", 2, 3, "two methods are better"),
    _rank("Table 4", "ranking_loss", "arts", "lift", 3, 2),
    *_failed("Table 3", "genbase", "brsvm", "ecc", "lift"),
    *_failed("Table 3", "medical", "brsvm", "ecc"),
    *_failed("Table 4", "computer", "brsvm", "ecc", "lift"),
    *_failed("Table 4", "corel5k", "brsvm", "ecc", "lift"),
    *_failed("Table 4", "education", "ecc", "lift"),
    *_failed("Table 4", "health", "brsvm", "ecc", "lift"),
    *_failed("Table 4", "social", "brsvm", "ecc", "lift"),
    *_failed("Table 4", "society", "brsvm", "ecc", "lift"),
    Slip("Table 3", "failed runs", None, None,
         "a standard deviation of 0.092 of one-error, where other methods have 0.025",
         dataset="cal500", method="mahr"),
    Slip("Table 4", "whole row", None, None,
         "first in one-error and average precision, by far, and last or nearly so in the other "
         "three; the numbers look like another data set's",
         dataset="education", method="brsvm"),
    _friedman("one_error", 4.57, 8.07, 6.73, 9.74, proven=True),
    _friedman("hamming_loss", 6.06, 11.68, 7.19, 21.80, proven=True),
    _friedman("ranking_loss", 13.74, 12.84, 10.60, 16.12, proven=False),
    _friedman("coverage", 6.76, 8.11, 6.59, 10.20, proven=False),
    _friedman("average_precision", 11.45, 11.93, 10.32, 14.32, proven=False),
    Slip("text", "critical difference", 2.3261, 2.3257,
         "q is 2.9483; 2.949 is a table's value, and with it the difference is 2.3262"),
    Slip("text", "top three, percent", 89.33, 90.67, "68 of 75 printed ranks"),
    Slip("text", "first on the large data sets, percent", 55.50, 57.50, "23 of 40 printed ranks"),
    Slip("text", "by one-error, methods that do not differ from IMCC", ("llsf",), ("llsf", "jfsc"),
         "JFSC's mean rank is 2.17 above IMCC's if means that are equal in print are equal, less "
         "than the critical difference of 2.33; over all orders of them it is 2.00 to 2.33 above, "
         "so that the sentence can be true",
         metric="one_error", method="jfsc", proven=False, interval=(2.00, 2.33)),
    Slip("text", "by how many metrics IMCC differs from LLSF", "at least two", 1,
         "the mean ranks are further apart than the critical difference of 2.33 for ranking loss; "
         "for coverage they are 2.17 apart if means that are equal in print are equal, and 1.87 to "
         "2.53 over all orders of them, so that the sentence can be true",
         metric="coverage", method="llsf", proven=False, interval=(1.87, 2.53)),
    Slip("text", "first on image, scene, yeast and arts by all metrics", 1, 3,
         "third on arts by Hamming loss; and arts is not of regular scale",
         metric="hamming_loss", dataset="arts", method="imcc"),
)  # fmt: skip


def doubtful(dataset: str, method: str) -> str | None:
    """Return why the published results of a method on a data set are doubtful.

    Parameters
    ----------
    dataset, method : str
        Names of the data set and the method.

    Returns
    -------
    str or None
        The reason; None if the results are not doubtful.

    Examples
    --------
    >>> from imcc_paper.published import doubtful
    >>> doubtful("yeast", "imcc") is None, "failed runs" in doubtful("health", "lift")
    (True, True)
    """
    reasons = [
        slip.why
        for slip in SLIPS
        if slip.what in ("failed runs", "whole row")
        and (slip.dataset, slip.method) == (dataset, method)
    ]
    return reasons[0] if reasons else None
