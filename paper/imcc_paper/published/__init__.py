"""The published results of the paper as data.

From S. Shu, F. Lv, Y. Yan, L. Li, S. He and J. He, "Incorporating multiple cluster centers for
multi-label learning", Information Sciences 590, 2022: the results of seven algorithms on fifteen
data sets by five metrics (Tables 3 and 4), the data sets (Table 2) and the Friedman tests
(Table 5).  All values are as printed; :data:`SLIPS` lists known and possible errors.
"""

from imcc_paper.published._slips import SLIPS, Slip, doubtful
from imcc_paper.published._tables import (
    CITATION,
    DECIMALS,
    FRIEDMAN,
    N_REPETITIONS,
    PERCENTAGES,
    PublishedDataset,
    PublishedFriedman,
    PublishedTable,
    datasets,
    table,
)
from imcc_paper.published._ties import friedman_range

__all__ = [
    "CITATION",
    "DECIMALS",
    "FRIEDMAN",
    "N_REPETITIONS",
    "PERCENTAGES",
    "SLIPS",
    "PublishedDataset",
    "PublishedFriedman",
    "PublishedTable",
    "Slip",
    "datasets",
    "doubtful",
    "friedman_range",
    "table",
]
