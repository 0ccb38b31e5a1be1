"""Statistical comparison of methods over several data sets: ranks, tests, effect sizes, wins.

:func:`compare` computes all statistics of a :class:`ScoreTable`.  The functions that it uses take
plain arrays (rows are data sets, columns are methods) and can be used separately.

The procedures are those recommended by J. Demšar, "Statistical comparisons of classifiers over
multiple data sets", Journal of Machine Learning Research 7, 2006, and later work.  All quantiles
are computed from distributions, not taken from printed tables.
"""

from imcc.comparison._bayes import (
    ROPE,
    BayesianControl,
    SignedRankPosterior,
    bayesian_control,
    bayesian_signed_rank,
)
from imcc.comparison._compare import Comparison, compare
from imcc.comparison._effects import EffectControl, EffectSize, effect_control, effect_size
from imcc.comparison._friedman import Friedman, friedman
from imcc.comparison._missing import Dropped, MissingRunsError
from imcc.comparison._posthoc import (
    ControlRanks,
    Nemenyi,
    against_control,
    cliques,
    critical_difference,
    holm,
    nemenyi,
)
from imcc.comparison._ranks import Podium, join_podiums, mean_ranks, podium, rank_methods
from imcc.comparison._table import ScoreTable
from imcc.comparison._ties import FriedmanRange, friedman_range, rank_difference_range
from imcc.comparison._wilcoxon import (
    WilcoxonControl,
    WilcoxonPairs,
    wilcoxon_control,
    wilcoxon_p,
    wilcoxon_pairs,
)
from imcc.comparison._wins import WinTieLoss, significant_win_tie_loss, win_tie_loss

__all__ = [
    "ROPE",
    "BayesianControl",
    "Comparison",
    "ControlRanks",
    "Dropped",
    "EffectControl",
    "EffectSize",
    "Friedman",
    "FriedmanRange",
    "MissingRunsError",
    "Nemenyi",
    "Podium",
    "ScoreTable",
    "SignedRankPosterior",
    "WilcoxonControl",
    "WilcoxonPairs",
    "WinTieLoss",
    "against_control",
    "bayesian_control",
    "bayesian_signed_rank",
    "cliques",
    "compare",
    "critical_difference",
    "effect_control",
    "effect_size",
    "friedman",
    "friedman_range",
    "holm",
    "join_podiums",
    "mean_ranks",
    "nemenyi",
    "podium",
    "rank_difference_range",
    "rank_methods",
    "significant_win_tie_loss",
    "wilcoxon_control",
    "wilcoxon_p",
    "wilcoxon_pairs",
    "win_tie_loss",
]
