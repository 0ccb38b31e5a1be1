"""Multi-label data: reading and writing files, named data sets, descriptions and splits.

:func:`read` supports the formats of the field, ARFF of MULAN and MEKA, MATLAB, svmlight and NumPy
files; :mod:`imcc.tables` reads tables.  :func:`write` writes NumPy and CSV files.
:func:`load_dataset` loads the data sets of the paper by name, :func:`describe` summarises a data
set, and :func:`paper_splits` splits one as in the paper.
"""

from imcc.datasets._dataset import Dataset
from imcc.datasets._describe import Description, describe
from imcc.datasets._errors import DataFetchError, DataFormatError, DatasetError, DataWarning
from imcc.datasets._fetch import data_home
from imcc.datasets._formats import read, write
from imcc.datasets._load import fetch_datasets, load_dataset
from imcc.datasets._registry import DatasetInfo, dataset_info, list_datasets
from imcc.datasets._splits import paper_splits, split_seed, train_test_split

__all__ = [
    "DataFetchError",
    "DataFormatError",
    "DataWarning",
    "Dataset",
    "DatasetError",
    "DatasetInfo",
    "Description",
    "data_home",
    "dataset_info",
    "describe",
    "fetch_datasets",
    "list_datasets",
    "load_dataset",
    "paper_splits",
    "read",
    "split_seed",
    "train_test_split",
    "write",
]
