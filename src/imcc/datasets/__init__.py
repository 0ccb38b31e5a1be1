"""Multi-label data: reading and writing files, named data sets, descriptions and splits.

:func:`read` and :func:`write` support the formats of the field: ARFF of MULAN and MEKA, MATLAB
(read only), svmlight and NumPy files; :mod:`imcc.tables` reads tables.  :func:`load_dataset` loads
the data sets of the paper by name, :func:`describe` summarises a data set, :func:`paper_splits`
splits one as in the paper, and :func:`open_stream` reads files that are larger than memory.
"""

from imcc.datasets._dataset import Dataset
from imcc.datasets._describe import Description, describe
from imcc.datasets._errors import DataFetchError, DataFormatError, DatasetError, DataWarning
from imcc.datasets._fetch import data_home
from imcc.datasets._figures import draw_labels
from imcc.datasets._formats import read, write
from imcc.datasets._load import fetch_datasets, load_dataset
from imcc.datasets._registry import DatasetInfo, dataset_info, list_datasets
from imcc.datasets._splits import paper_splits, split_seed, train_test_split
from imcc.datasets._stream import FileStream, open_stream

__all__ = [
    "DataFetchError",
    "DataFormatError",
    "DataWarning",
    "Dataset",
    "DatasetError",
    "DatasetInfo",
    "Description",
    "FileStream",
    "data_home",
    "dataset_info",
    "describe",
    "draw_labels",
    "fetch_datasets",
    "list_datasets",
    "load_dataset",
    "open_stream",
    "paper_splits",
    "read",
    "split_seed",
    "train_test_split",
    "write",
]
