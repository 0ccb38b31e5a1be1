"""Words that get other positions: the quick way agrees with the obvious one."""

import functools

import numpy as np
import pytest
import scipy.sparse as sp

from imcc.datasets import read
from imcc.datasets._table import move_codes

read_mulan = functools.partial(read, format="mulan")


def moved_one_by_one(values, moves):
    out = values.toarray() if sp.issparse(values) else values.copy()
    for position, moved in moves.items():
        for row in range(len(out)):
            if not np.isnan(out[row, position]):
                out[row, position] = moved[int(out[row, position])]
    return out


@pytest.mark.parametrize("first_moves", [False, True])
def test_move_codes(first_moves):
    rng = np.random.RandomState(0)
    values = rng.randint(0, 3, (20, 6)).astype(float)
    values[rng.rand(20, 6) < 0.1] = np.nan
    moves = {1: np.array([0.0, 2, 1]), 4: np.array([2.0, 0, 1] if first_moves else [0.0, 2, 1])}
    expected = moved_one_by_one(values, moves)
    np.testing.assert_array_equal(move_codes(values, moves), expected)
    sparse = sp.csr_array(values)
    np.testing.assert_array_equal(move_codes(sparse, moves).toarray(), expected)
    np.testing.assert_array_equal(sparse.toarray(), values, "the table is not changed")


def test_string_attributes_of_sparse_files(tmp_path):
    """Many of them, in rows that leave some out: the words are those of the rows."""
    names = "".join(f"@attribute s{i} string\n" for i in range(500))
    rows = [
        "{" + ",".join(f"{i} w{(i * r) % 3}" for i in range(r, 500)) + "}" for r in (1, 2, 3, 4)
    ]
    text = f"@relation r\n{names}@attribute y {{0,1}}\n@data\n" + "\n".join([*rows, rows[0]])
    (tmp_path / "t.arff").write_text(text)
    data = read_mulan(tmp_path / "t.arff", labels=["y"])
    found = data.X.toarray()
    for i in (0, 1, 7, 499):
        for row, r in enumerate((1, 2, 3, 4, 1)):
            word = f"w{(i * r) % 3}" if i >= r else ""
            on = {n for n, v in zip(data.feature_names, found[row], strict=True) if v == 1}
            own = {n for n in on if n == f"s{i}" or n.startswith(f"s{i}=")}
            assert own <= {f"s{i}={word}", f"s{i}"}, (i, r)
            if f"s{i}={word}" in data.feature_names:
                assert f"s{i}={word}" in own
