"""The multi-label data set: features, labels, their names and their source."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from imcc._utils.errors import InvalidArgumentError, InvalidTypeError
from imcc.datasets._coding import Coding
from imcc.datasets._errors import DataFormatError, listed, repeated

# Large enough for products such as Y.T @ Y, and half the size of the default.
LABEL_DTYPE = np.int32

# Number of rows of a sparse matrix that are converted to dense at a time.
_BLOCK = 256


def default_names(prefix: str, count: int) -> tuple[str, ...]:
    """Return default names of columns: prefix0, prefix1, ..."""
    return tuple(f"{prefix}{i}" for i in range(count))


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A multi-label data set.

    Two data sets are equal if their features, labels and names are equal.  The storage of X (dense
    or sparse), the name of the data set and its source are ignored.  Slicing with a slice, an array
    of row numbers or a boolean mask returns a data set of these rows.

    Parameters
    ----------
    X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
        The features, stored as a float64 ndarray or, if sparse, as a ``scipy.sparse.csr_array``
        without duplicate entries (these are summed).  Missing values are NaN.
    Y : array-like, data frame or sparse matrix of shape (n_samples, n_labels)
        The labels, coded {0, 1}, {-1, +1} or boolean; stored as a dense int32 array of 0 and 1.
    feature_names, label_names : sequence of str, default=()
        Names of the columns.  If empty, the column names of a data frame, or else
        ``x0, x1, ...`` and ``label0, label1, ...``.  Label names must be unique.
    name : str, default="unnamed"
        Short name of the data set.
    source : str, default=""
        Origin of the data: a path or a URL.
    coding : Coding or None, default=None
        How the columns of the file were encoded as features.  Set by the readers and used by
        :func:`read_matching`.

    Attributes
    ----------
    n_rows, n_features, n_labels : int
        Numbers of rows, features and labels.
    is_sparse : bool
        Whether X is a sparse matrix.
    has_missing : bool
        Whether X contains NaN.
    cardinality : float
        Mean number of labels per row.
    density : float
        Cardinality divided by the number of labels.
    n_label_sets : int
        Number of distinct label sets.

    See Also
    --------
    read : Reads a data set from a file.
    describe : Summarises a data set.

    Examples
    --------
    >>> from imcc.datasets import Dataset
    >>> pets = Dataset([[0.5, 1.0], [1.5, 0.0], [0.0, 2.0]], [[1, 0], [1, 1], [0, 0]],
    ...                label_names=["cat", "dog"], name="pets")
    >>> pets
    Dataset 'pets': 3 rows, 2 features (dense), 2 labels, 1.000 labels per row
    >>> pets[:2].Y
    array([[1, 0],
           [1, 1]], dtype=int32)
    >>> pets.cardinality, pets.n_label_sets
    (1.0, 3)
    """

    X: Any
    Y: np.ndarray
    feature_names: tuple[str, ...] = ()
    label_names: tuple[str, ...] = ()
    name: str = "unnamed"
    source: str = ""
    coding: Coding | None = None

    def __post_init__(self) -> None:
        feature_names = self.feature_names or _column_names(self.X)
        label_names = self.label_names or _column_names(self.Y)
        X = _as_features(self.X)
        Y = _as_labels(self.Y)
        if X.shape[0] != Y.shape[0]:
            raise InvalidArgumentError(
                "Y", f"must have as many rows as X: X has {X.shape[0]}, Y has {Y.shape[0]}"
            )
        for name, array in (("X", X), ("Y", Y)):
            if array.shape[1] == 0:
                raise InvalidArgumentError(name, "must have at least one column")
        names = _as_names("feature_names", feature_names, "x", X.shape[1])
        labels = _as_names("label_names", label_names, "label", Y.shape[1])
        # The class is frozen.
        vars(self).update(X=X, Y=Y, feature_names=names, label_names=labels)
        if twice := repeated(self.label_names):
            raise InvalidArgumentError("label_names", f"must be unique; repeated: {listed(twice)}")

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    @property
    def n_labels(self) -> int:
        return int(self.Y.shape[1])

    @property
    def is_sparse(self) -> bool:
        return bool(sp.issparse(self.X))

    @property
    def cardinality(self) -> float:
        return float(self.Y.sum() / self.n_rows) if self.n_rows else 0.0

    @property
    def density(self) -> float:
        return self.cardinality / self.n_labels

    @property
    def n_label_sets(self) -> int:
        packed = np.packbits(self.Y.astype(bool), axis=1)
        return len({row.tobytes() for row in packed})

    @property
    def has_missing(self) -> bool:
        """Whether X contains NaN."""
        values = self.X.data if self.is_sparse else self.X
        return bool(np.isnan(values).any())

    def __len__(self) -> int:
        return self.n_rows

    def __getitem__(self, rows: Any) -> Dataset:
        """Return a data set of the selected rows: a slice, row numbers or a boolean mask."""
        if isinstance(rows, (int, np.integer)):
            raise TypeError(
                f"a Dataset cannot be indexed by a single row number: use [{rows}:{rows + 1}], a "
                "list of row numbers or a boolean mask"
            )
        index = rows if isinstance(rows, slice) else np.asarray(rows)
        if not isinstance(index, slice) and index.size == 0 and index.dtype != bool:
            index = index.astype(np.intp)  # an empty list is an array of floats
        return replace(self, X=self.X[index], Y=self.Y[index])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Dataset):
            return NotImplemented
        return self.fingerprint() == other.fingerprint()

    __hash__ = None  # type: ignore[assignment]  # arrays inside: not hashable

    def renamed(self, name: str) -> Dataset:
        """Return the same data with another name.

        Parameters
        ----------
        name : str
            The new name.

        Returns
        -------
        Dataset

        Examples
        --------
        >>> Dataset([[1.0]], [[1]]).renamed("one").name
        'one'
        """
        return replace(self, name=name)

    def fingerprint(self) -> str:
        """Return the SHA-256 of the arrays and names, which is the same on every machine.

        It depends on the order of rows and columns, but not on the storage of X, the name of the
        data set or its source.

        Returns
        -------
        str
            64 hexadecimal digits.

        Examples
        --------
        >>> from scipy.sparse import csr_array
        >>> dense = Dataset([[0.0, 2.0]], [[1]])
        >>> dense.fingerprint() == Dataset(csr_array(dense.X), dense.Y).fingerprint()
        True
        """
        digest = hashlib.sha256()
        digest.update(repr((self.X.shape, self.Y.shape)).encode())
        for names in (self.feature_names, self.label_names):
            digest.update("\0".join(names).encode("utf-8", "surrogatepass") + b"\0\0")
        for block in _dense_blocks(self.X):
            # + 0.0 converts -0.0 to 0.0; all NaN get the same bits.
            values = np.where(np.isnan(block), np.nan, block + 0.0)
            digest.update(np.ascontiguousarray(values, dtype="<f8").tobytes())
        digest.update(np.ascontiguousarray(self.Y, dtype="u1").tobytes())
        return digest.hexdigest()

    def __repr__(self) -> str:
        storage = "sparse" if self.is_sparse else "dense"
        return (
            f"Dataset {self.name!r}: {_many(self.n_rows, 'row')}, "
            f"{_many(self.n_features, 'feature')} ({storage}), {_many(self.n_labels, 'label')}, "
            f"{self.cardinality:.3f} labels per row"
        )


def concatenate(datasets: Sequence[Dataset], name: str | None = None) -> Dataset:
    """Concatenate the rows of several data sets with the same columns.

    Parameters
    ----------
    datasets : sequence of Dataset
        At least one data set; all with the same feature and label names in the same order.
    name : str, default=None
        Name of the result; None uses that of the first data set.

    Returns
    -------
    Dataset
        Sparse if one of the data sets is.

    Examples
    --------
    >>> part = Dataset([[1.0, 2.0]], [[1, 0]])
    >>> concatenate([part, part]).n_rows
    2
    """
    first = datasets[0]
    for other in datasets[1:]:
        if (other.feature_names, other.label_names) != (first.feature_names, first.label_names):
            raise DataFormatError(
                f"cannot be concatenated with {first.source or first.name}: the names of its "
                "features or labels are different",
                other.source or other.name,
            )
    X = stacked([part.X for part in datasets])
    sources = dict.fromkeys(part.source for part in datasets if part.source)
    Y = np.vstack([part.Y for part in datasets])
    return replace(
        first, X=X, Y=Y, name=first.name if name is None else name, source=", ".join(sources)
    )


def stacked(parts: Sequence[Any]) -> Any:
    """Return the rows of several matrices; sparse if one of them is."""
    if any(sp.issparse(part) for part in parts):
        return sp.vstack([sp.csr_array(part) for part in parts], format="csr")
    return np.vstack(parts)


def _many(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def _column_names(table: Any) -> tuple[str, ...]:
    """Return the column names of a data frame, if all are non-empty strings."""
    columns = tuple(getattr(table, "columns", ()))
    return columns if all(isinstance(name, str) and name for name in columns) else ()


def _as_features(X: Any) -> Any:
    if not sp.issparse(X):
        return _as_matrix("X", X, dtype=np.float64)
    # A copy, so that the caller's matrix is not modified.
    matrix = sp.csr_array(X, dtype=np.float64, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    matrix.sort_indices()
    if max(*matrix.shape, matrix.nnz) < 2**31:  # parts of scikit-learn need 32-bit indices
        matrix.indices = matrix.indices.astype(np.int32, copy=False)
        matrix.indptr = matrix.indptr.astype(np.int32, copy=False)
    return matrix


def _as_labels(Y: Any) -> np.ndarray:
    values = _as_matrix("Y", Y.toarray() if sp.issparse(Y) else Y)
    on = values == 1
    if not (np.all(on | (values == 0)) or np.all(on | (values == -1))):
        odd = ", ".join(str(v) for v in np.unique(values)[:6].tolist())
        raise InvalidArgumentError(
            "Y", f"must contain labels coded {{0, 1}} or {{-1, +1}}, got the values {odd}"
        )
    return np.ascontiguousarray(on, dtype=LABEL_DTYPE)


def _as_matrix(name: str, table: Any, dtype: Any = None) -> np.ndarray:
    try:
        values = np.ascontiguousarray(table, dtype=dtype)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(name, f"must contain numbers: {error}") from error
    if values.dtype.kind not in "biuf":
        raise InvalidArgumentError(name, f"must contain numbers, got an array of {values.dtype}")
    if values.ndim != 2 or np.ndim(table) != 2:
        raise InvalidArgumentError(
            name, f"must be two-dimensional, got an array of shape {np.shape(table)}"
        )
    return values


def _as_names(what: str, names: Iterable[str], prefix: str, count: int) -> tuple[str, ...]:
    given = tuple(names)
    if not given:
        return default_names(prefix, count)
    texts = all(isinstance(name, str) and name and "\0" not in name for name in given)
    if isinstance(names, str) or not texts:
        raise InvalidTypeError(
            what, f"must be a list of non-empty strings without NUL, got {listed(given)}"
        )
    if len(given) != count:
        raise InvalidArgumentError(what, f"has {len(given)} names for {count} columns")
    return tuple(map(str, given))


def _dense_blocks(X: Any) -> Iterable[np.ndarray]:
    for start in range(0, X.shape[0], _BLOCK):
        block = X[start : start + _BLOCK]
        yield block.toarray() if sp.issparse(block) else block
