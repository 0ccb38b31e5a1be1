"""Statistical comparison of methods over several data sets: ranks, tests, differences, wins.

:func:`compare` computes all statistics of a :class:`ScoreTable`.  The tests of two methods take the
differences of their scores, one per data set.

The procedures are those recommended by J. Demšar, "Statistical comparisons of classifiers over
multiple data sets", Journal of Machine Learning Research 7, 2006, and later work.  All quantiles
are computed from distributions, not taken from printed tables.
"""

from imcc.comparison._compare import Comparison, compare
from imcc.comparison._pairs import bayesian_signed_rank, effect_size, holm, wilcoxon_p
from imcc.comparison._table import MissingRunsError, ScoreTable

__all__ = [
    "Comparison",
    "MissingRunsError",
    "ScoreTable",
    "bayesian_signed_rank",
    "compare",
    "effect_size",
    "holm",
    "wilcoxon_p",
]
