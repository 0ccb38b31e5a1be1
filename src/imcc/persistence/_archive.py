"""The archive in a model file, with checked arrays and short class names.

skops writes a zip archive: ``schema.json`` describes the objects, and every array is a separate
member.  The archives of imcc differ from it in these ways:

* Classes of imcc are stored by the short names of :mod:`imcc._utils.names` (with the module
  ``imcc``) instead of their module paths, so that moving a class does not break files.
* Nothing is compressed, neither the members nor the arrays of sparse matrices, so that the size of
  the file bounds the memory that reading it takes.
* Every object is described in full wherever it occurs, and every array belongs to one object, so
  that the size of the file also bounds the time that reading it takes.
* Every array is checked when it is read: its header against its length, and the structure of sparse
  matrices completely, because SciPy's compiled code does not check it.
"""

from __future__ import annotations

import io
import json
import math
import sys
import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np

from imcc._utils.names import CLASSES, PARTS
from imcc.persistence._errors import ModelFileError, require

SCHEMA = "schema.json"
CARD = "imcc.json"
# Module name of imcc's classes in the schema.
_OURS = "imcc"
_COMPRESSED_FORMATS = ("csr", "csc")
_INDEX_TYPES = (np.dtype(np.int32), np.dtype(np.int64))
_PARTS = ("data", "format", "indices", "indptr", "shape")
# Suffixes of what the loaders of skops read, by which it is checked.
_SUFFIXES = {"NdArrayNode": ".npy", "SparseMatrixNode": ".npz"}
# Levels of JSON in a schema.
_MAX_DEPTH = 200
_WHERE = {**CLASSES, **PARTS}
_NAMES = {tuple(where.split(":")): name for name, where in _WHERE.items()}


def to_stored(data: bytes) -> bytes:
    """Convert an archive of skops to that of a model file."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        schema = json.loads(archive.read(SCHEMA))
        for node in _nodes(schema):
            if (short := _NAMES.get((node["__module__"], node["__class__"]))) is not None:
                node["__module__"], node["__class__"] = _OURS, short
        members = {name: archive.read(name) for name in archive.namelist() if name != SCHEMA}
    for name in members:
        if name.endswith(".npz"):
            with zipfile.ZipFile(io.BytesIO(members[name])) as packed:
                members[name] = _zipped({part: packed.read(part) for part in packed.namelist()})
    return _zipped(members | {SCHEMA: json.dumps(schema, separators=(",", ":")).encode()})


def _zipped(members: dict[str, bytes]) -> bytes:
    """Return a zip archive that is not compressed."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


def from_stored(data: bytes, writer: str) -> tuple[bytes, set[tuple[str, str]]]:
    """Convert the archive of a model file to that of skops, and check its schema and all arrays.

    Parameters
    ----------
    data : bytes
        A model file, or the result of :func:`to_stored`.
    writer : str
        Version of imcc that wrote it, for error messages.

    Returns
    -------
    archive : bytes
        The archive that skops reads.
    types : set of (str, str)
        The loader of skops and the full class name of every object.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        schema = json.loads(archive.read(SCHEMA))
        for node in _nodes(schema):
            if node["__module__"] == _OURS:
                name = node["__class__"]
                if name not in _WHERE:
                    raise ModelFileError(
                        f"the model contains the class {name!r}, which this version of imcc does "
                        f"not have; the file was written by imcc {writer}: install that version or "
                        "a newer one"
                    )
                node["__module__"], node["__class__"] = _WHERE[name].split(":")
        _check_schema(schema)
        members = {
            name: archive.read(name) for name in archive.namelist() if name not in (SCHEMA, CARD)
        }
    for name, content in members.items():
        if name.endswith(".npy"):
            _read_array(content, name)
        elif name.endswith(".npz"):
            _check_sparse(content, name)
    _check_trees(schema, members)
    types = {
        (node["__loader__"], f"{node['__module__']}.{node['__class__']}") for node in _nodes(schema)
    }
    return _zipped(members | {SCHEMA: json.dumps(schema).encode()}), types


def _nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield the entries of a schema that describe an object, in file order."""
    waiting = [schema]
    while waiting:
        found = waiting.pop()
        if _is_node(found):
            yield found
        if isinstance(found, (dict, list)):
            waiting += reversed(found.values() if isinstance(found, dict) else found)


def _is_node(found: Any) -> bool:
    # In the entries of a user's dictionary, the value of this key is a dictionary.
    return isinstance(found, dict) and isinstance(found.get("__loader__"), str)


def _check_schema(schema: Any) -> None:
    """Check that reading a schema takes time and memory in proportion to its size.

    skops uses the first entry with a number for all others with it, and goes through its parts once
    for each of them.  If the others were shorter, the parts could double with every level.
    """
    described: dict[Any, tuple[Any, ...]] = {}
    owners: dict[str, Any] = {}

    def check(found: Any, depth: int) -> int:
        """Return the number of dictionaries and lists in a part of the schema."""
        require(depth <= _MAX_DEPTH, "its schema is nested too deeply")
        parts = found.values() if isinstance(found, dict) else found
        size = 1 + sum(check(part, depth + 1) for part in parts if isinstance(part, (dict, list)))
        if _is_node(found):
            check_node(found, size)
        return size

    def check_node(node: dict[str, Any], size: int) -> None:
        number, file, content = node.get("__id__"), node.get("file"), node.get("content")
        names = node["__loader__"], node["__module__"], node["__class__"]
        value = content if isinstance(content, (str, int, float)) else None
        if file is not None:
            suffix = _SUFFIXES.get(node["__loader__"], "")
            require(str(file).endswith(suffix), f"{file!r} has the wrong suffix")
            # skops reads an array again for each entry that has no number, or zero.
            is_owned = bool(number) and owners.setdefault(file, number) == number
            require(is_owned, "an array belongs to two objects")
        is_list = node["__loader__"] == "JsonNode" and str(content).lstrip()[:1] in ("[", "{")
        require(not is_list, "its schema contains a list as text")
        entry = (*names, file, value, size)
        is_same = not number or described.setdefault(number, entry) == entry
        require(is_same, "its schema describes an object in two ways")

    check(schema, 0)


# Arrays


def _read_array(content: bytes, name: str) -> np.ndarray:
    """Return an array without copying it, after checking its header against its length."""
    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    require(version in ((1, 0), (2, 0)), f"the array {name} has an unknown format")
    if version == (1, 0):
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    else:
        shape, fortran, dtype = np.lib.format.read_array_header_2_0(stream)
    start = stream.tell()
    count = math.prod(shape)
    require(
        not dtype.hasobject
        and all(length >= 0 for length in shape)
        and count * dtype.itemsize == len(content) - start
        and (count == 0 or dtype.itemsize > 0),
        f"the array {name} is invalid",
    )
    flat = np.frombuffer(content, dtype, count=count, offset=start) if count else np.empty(0, dtype)
    if dtype.kind == "U" and count:
        largest = flat.view(dtype.byteorder + "u4").max()
        require(largest <= sys.maxunicode, f"the text in the array {name} is invalid")
    return flat.reshape(shape, order="F" if fortran else "C")


def _check_sparse(content: bytes, name: str) -> None:
    """Check a sparse matrix completely: lengths, types, order and bounds.

    SciPy's own check does not see numbers whose differences overflow.
    """

    def check(holds: bool) -> None:
        require(holds, f"the sparse matrix {name} is invalid")

    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
        names = [info.filename.removesuffix(".npy") for info in members]
        check(all(info.compress_type == zipfile.ZIP_STORED for info in members))
        check(len(set(names)) == len(names))
        check({*_PARTS} <= {*names} <= {*_PARTS, "_is_array"})
        parts = {
            part: _read_array(archive.read(info), f"{name}/{part}")
            for part, info in zip(names, members, strict=True)
        }
    kind = parts["format"].item()
    kind = kind.decode("ascii") if isinstance(kind, bytes) else kind
    check(kind in _COMPRESSED_FORMATS)
    check(parts["shape"].shape == (2,) and parts["shape"].dtype.kind in "iu")
    rows, columns = parts["shape"].tolist()
    check(min(rows, columns) >= 0)
    major, minor = (rows, columns) if kind == "csr" else (columns, rows)
    data, indices, indptr = parts["data"], parts["indices"], parts["indptr"]
    check(all(part.ndim == 1 for part in (data, indices, indptr)))
    check(data.dtype.kind in "biuf" and data.dtype.isnative)
    check(all(part.dtype in _INDEX_TYPES for part in (indices, indptr)))
    check(len(indptr) == major + 1 and len(indices) == len(data))
    check(int(indptr[0]) == 0 and int(indptr[-1]) == len(indices))
    check(bool((indptr[1:] >= indptr[:-1]).all()))
    if len(indices):
        check(int(indices.min()) >= 0 and int(indices.max()) < minor)


# Trees


def _check_trees(schema: Any, members: dict[str, bytes]) -> None:
    """Check the arguments of scikit-learn's trees, whose constructor does not check them."""
    for node in _nodes(schema):
        if node.get("__loader__") != "TreeNode":
            continue
        n_features, n_classes, n_outputs = node["__reduce__"]["args"]["content"]
        features, outputs = (int(json.loads(part["content"])) for part in (n_features, n_outputs))
        classes = _read_array(members[n_classes["file"]], n_classes["file"])
        is_valid = classes.shape == (outputs,) and classes.dtype.kind == "i"
        is_valid = is_valid and features >= 1 and outputs >= 1 and classes.min() >= 1
        require(is_valid, "it contains an invalid tree")
