import numpy as np
import pandas as pd
import pytest

from imcc.datasets import Dataset, load_dataset, paper_splits, train_test_split


@pytest.fixture(scope="module")
def yeast():
    return load_dataset("yeast")


def test_every_row_is_on_one_side(yeast):
    splits = paper_splits(yeast)
    assert len(splits) == 10
    for train, test in splits:
        assert len(test) == 483
        assert np.array_equal(np.sort(np.concatenate([train, test])), np.arange(2417))
        assert np.all(np.diff(train) > 0)
        assert np.all(np.diff(test) > 0)


def test_the_sizes_are_those_of_the_authors_files():
    """They round the test part down: 195 of 978 rows, not 196."""
    sizes = {502: 100, 2417: 483, 1702: 340, 662: 132, 978: 195, 5000: 1000, 7395: 1479}
    for n_rows, n_test in sizes.items():
        dataset = Dataset(np.zeros((n_rows, 1)), np.ones((n_rows, 1)))
        assert len(paper_splits(dataset, 1)[0][1]) == n_test


def test_the_splits_are_the_same_for_ever(yeast):
    train, test = paper_splits(yeast)[0]
    assert test[:8].tolist() == [1, 20, 21, 22, 47, 57, 62, 65]
    assert train[:8].tolist() == [0, 2, 3, 4, 5, 6, 7, 8]
    assert paper_splits(yeast, seed=7)[9][1][:8].tolist() == [0, 8, 12, 21, 22, 28, 55, 56]


def test_the_stratified_splits_are_the_same_for_ever(yeast):
    test = paper_splits(yeast, 1, stratified=True)[0][1]
    assert test[:6].tolist() == [0, 2, 3, 5, 7, 15]


def test_a_split_does_not_depend_on_the_others(yeast):
    np.random.seed(3)
    few, many = paper_splits(yeast, 2), paper_splits(yeast, 12)
    for a, b in zip(few, many, strict=False):
        np.testing.assert_array_equal(a[1], b[1])


def test_seed_name_and_repetition_count(yeast):
    tests = [
        paper_splits(yeast)[0][1],
        paper_splits(yeast)[1][1],
        paper_splits(yeast, seed=1)[0][1],
        paper_splits(yeast.renamed("other"))[0][1],
    ]
    assert len({test.tobytes() for test in tests}) == 4


@pytest.mark.parametrize("stratified", [False, True])
def test_test_size(yeast, stratified):
    train, test = paper_splits(yeast, 1, test_size=0.5, stratified=stratified)[0]
    assert abs(len(test) - 1208) <= (30 if stratified else 0)
    assert len(train) + len(test) == 2417


def test_stratified_splits_keep_the_label_frequencies(yeast):
    def gap(stratified):
        gaps = [
            np.abs(yeast.Y[train].mean(axis=0) - yeast.Y[test].mean(axis=0)).mean()
            for train, test in paper_splits(yeast, 5, stratified=stratified)
        ]
        return np.mean(gaps)

    assert gap(True) < 0.7 * gap(False)


def test_rare_labels_are_on_both_sides():
    rng = np.random.default_rng(0)
    Y = (rng.random((400, 30)) < np.geomspace(0.005, 0.5, 30)).astype(int)
    X = np.arange(400.0)[:, np.newaxis]
    for seed in range(10):
        X_train, X_test, Y_train, Y_test, more_train, _ = train_test_split(
            X, Y, np.arange(400), test_size=0.2, random_state=seed
        )
        assert abs(len(X_test) - 80) <= 12
        assert sorted([*X_train[:, 0], *X_test[:, 0]]) == list(range(400))
        np.testing.assert_array_equal(Y[X_train[:, 0].astype(int)], Y_train)
        np.testing.assert_array_equal(more_train, X_train[:, 0])
        often = Y.sum(axis=0) >= 2
        assert Y_train.any(axis=0)[often].all()
        assert Y_test.any(axis=0)[often].all()
        gap = np.abs(Y_test.mean(axis=0) - Y.mean(axis=0))
        assert gap.mean() < 0.012  # 0.026 for a random split
    again = train_test_split(X, Y, test_size=0.2, random_state=9)
    np.testing.assert_array_equal(again[0], X_train)
    sets = [[f"l{j}" for j in np.flatnonzero(row)] for row in Y]
    frame = pd.DataFrame(X, index=[f"r{i}" for i in range(400)])
    parts = train_test_split(frame, sets, test_size=0.2, random_state=9)
    assert parts[0].index[0].startswith("r")
    assert len(parts[2]) == len(parts[0])


@pytest.mark.parametrize("size", [0, 1.5, "a", 0.001])
def test_sizes_that_leave_no_rows(size):
    with pytest.raises(ValueError, match="test_size"):
        train_test_split(np.eye(20), np.eye(20, 2, dtype=int), test_size=size)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_splits": 0}, "n_splits"),
        ({"test_size": 0.0}, "test_size"),
        ({"test_size": 1.0}, "need at least one row each"),
        ({"test_size": 1e-9}, "at least one row"),
        ({"seed": 1.5}, "seed"),
        ({"seed": None}, "seed"),
    ],
)
def test_wrong_values(yeast, options, message):
    with pytest.raises(ValueError, match=message):
        paper_splits(yeast, **options)


def test_only_data_sets():
    with pytest.raises(TypeError, match="must be a Dataset"):
        paper_splits("yeast")
