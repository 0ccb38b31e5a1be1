"""Multi-label data: reading and writing files, named data sets, descriptions and splits.

:func:`read` and :func:`write` support ARFF of MULAN and MEKA, MATLAB (read only), svmlight, CSV,
Parquet and NumPy files.  :func:`load_dataset` loads the data sets of the paper by name,
:func:`describe` summarises a data set, :func:`paper_splits` splits one as in the paper, and
:func:`open_stream` reads files that are larger than memory.
"""

from imcc.datasets._arff_write import write_meka, write_mulan
from imcc.datasets._coding import Coding
from imcc.datasets._csv import read_csv, write_csv
from imcc.datasets._dataset import Dataset, concatenate
from imcc.datasets._describe import CoOccurrence, Description, describe
from imcc.datasets._encode import NOMINAL
from imcc.datasets._errors import DataFetchError, DataFormatError, DatasetError, DataWarning
from imcc.datasets._fetch import TIMEOUT, data_home
from imcc.datasets._figures import draw_labels
from imcc.datasets._files import MAX_BYTES, Content, inner_name, open_content
from imcc.datasets._formats import FORMATS, Format, read, write
from imcc.datasets._load import DEFAULT, fetch_datasets, is_available, load_dataset
from imcc.datasets._mat import read_mat
from imcc.datasets._match import match_dataset, read_matching
from imcc.datasets._mulan import read_meka, read_mulan
from imcc.datasets._npz import read_npz, write_npz
from imcc.datasets._parquet import read_parquet, write_parquet
from imcc.datasets._registry import GROUPS, DatasetInfo, RemoteFile, dataset_info, list_datasets
from imcc.datasets._splits import paper_splits, split_seed
from imcc.datasets._stream import FileStream, open_stream
from imcc.datasets._svmlight import INDEX_BASES, read_svmlight, write_svmlight

__all__ = [
    "DEFAULT",
    "FORMATS",
    "GROUPS",
    "INDEX_BASES",
    "MAX_BYTES",
    "NOMINAL",
    "TIMEOUT",
    "CoOccurrence",
    "Coding",
    "Content",
    "DataFetchError",
    "DataFormatError",
    "DataWarning",
    "Dataset",
    "DatasetError",
    "DatasetInfo",
    "Description",
    "FileStream",
    "Format",
    "RemoteFile",
    "concatenate",
    "data_home",
    "dataset_info",
    "describe",
    "draw_labels",
    "fetch_datasets",
    "inner_name",
    "is_available",
    "list_datasets",
    "load_dataset",
    "match_dataset",
    "open_content",
    "open_stream",
    "paper_splits",
    "read",
    "read_csv",
    "read_mat",
    "read_matching",
    "read_meka",
    "read_mulan",
    "read_npz",
    "read_parquet",
    "read_svmlight",
    "split_seed",
    "write",
    "write_csv",
    "write_meka",
    "write_mulan",
    "write_npz",
    "write_parquet",
    "write_svmlight",
]
