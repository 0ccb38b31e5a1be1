"""Files whose checksum is right and whose content is not: errors, no crash, no nonsense."""

import copy
import io
import json
import subprocess
import sys
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.ensemble import ExtraTreesClassifier

from imcc import IMCCClassifier, KernelEnsembleClassifier
from imcc.baselines import KernelRidgeBaseline
from imcc.persistence import ModelFileError, load_model, save_model, untrusted_types
from imcc.persistence._checks import check_model
from imcc.persistence._file import _digest
from imcc.tabular import TreeCorrectedClassifier

pytest.importorskip("skops")

TREE = "sklearn.tree._tree.Tree"


@pytest.fixture(scope="module")
def problem(small_problem):
    X, Y, *_ = small_problem
    return np.maximum(X, 0), Y


@pytest.fixture(scope="module")
def sparse_model(problem, tmp_path_factory):
    X, Y = problem
    model = IMCCClassifier(n_clusters=4, random_state=0).fit(sp.csr_array(X), Y)
    return save_model(model, tmp_path_factory.mktemp("models") / "m.skops")


@pytest.fixture(scope="module")
def trees(problem, tmp_path_factory):
    model = ExtraTreesClassifier(n_estimators=2, random_state=0).fit(*problem)
    return save_model(model, tmp_path_factory.mktemp("models") / "m.skops")


def rewritten(file, target, change):
    """Write a model file again with changed members, and a checksum that fits them."""
    with zipfile.ZipFile(file) as old:
        members = {name: old.read(name) for name in old.namelist()}
    card = json.loads(members.pop("imcc.json"))
    change(members)
    with zipfile.ZipFile(target, "w") as new:
        for name, content in members.items():
            new.writestr(name, content)
        card["sha256"] = _digest(new)
        new.writestr("imcc.json", json.dumps(card))
    return target


def packed(**arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def in_sparse(change):
    """Return a change of the sparse matrix in a file."""

    def whole(members):
        (name,) = (name for name in members if name.endswith(".npz"))
        with np.load(io.BytesIO(members[name])) as archive:
            parts = {part: archive[part].copy() for part in archive.files}
        change(parts)
        members[name] = packed(**parts)

    return whole


def setting(part, place, value):
    def change(parts):
        parts[part][place] = value

    return change


def replacing(**parts):
    return lambda found: found.update(parts)


DAMAGE = {
    "an index too large": setting("indices", 3, 10**6),
    "a negative index": setting("indices", 3, -1),
    "an index of exactly the width": setting("indices", 3, 5),
    "pointers that fall": setting("indptr", 5, 0),
    "a pointer past the end": setting("indptr", 5, 10**6),
    "a last pointer too small": setting("indptr", -1, 1),
    "a first pointer": setting("indptr", 0, 1),
    "too few pointers": lambda parts: parts.update(indptr=parts["indptr"][:-1]),
    "too few indices": lambda parts: parts.update(indices=parts["indices"][:-1]),
    "pointers as numbers": lambda parts: parts.update(indptr=parts["indptr"].astype(float)),
    "indices as 16 bits": lambda parts: parts.update(indices=parts["indices"].astype(np.int16)),
    "swapped bytes": lambda parts: parts.update(data=parts["data"].astype(">f8")),
    "a matrix of indices": lambda parts: parts.update(indices=parts["indices"][None]),
    "complex numbers": lambda parts: parts.update(data=parts["data"].astype(complex)),
    "three axes": replacing(shape=np.array([90, 5, 1])),
    "a negative shape": replacing(shape=np.array([-1, 5])),
    "another format": replacing(format=np.array(b"bsr")),
    "no format": replacing(format=np.array(b"xyz")),
    "one more array": replacing(blocksize=np.array([1, 1])),
    "NaN": setting("data", 3, np.nan),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_sparse_matrices(sparse_model, tmp_path, name):
    file = rewritten(sparse_model, tmp_path / "m", in_sparse(DAMAGE[name]))
    with pytest.raises(ModelFileError, match=r"is invalid|an invalid|cannot be loaded"):
        load_model(file)
    with pytest.raises(ModelFileError):  # trusting the types does not help
        load_model(file, trusted=["scipy.sparse._csr.csr_array"])


def test_a_sparse_matrix_that_is_packed(sparse_model, tmp_path):
    def change(members):
        (name,) = (name for name in members if name.endswith(".npz"))
        with np.load(io.BytesIO(members[name])) as archive:
            buffer = io.BytesIO()
            np.savez_compressed(buffer, **archive)
        members[name] = buffer.getvalue()

    with pytest.raises(ModelFileError, match="is invalid"):
        load_model(rewritten(sparse_model, tmp_path / "m", change))


def test_random_damage_never_crashes(sparse_model, problem, tmp_path):
    """Whatever numbers are in the sparse matrix: an error, or a model that can be used."""
    rng = np.random.default_rng(0)
    X = problem[0]
    refused = 0
    for _ in range(60):

        def change(parts):
            part = parts[str(rng.choice(["indices", "indptr"]))]
            part[rng.integers(len(part))] = rng.integers(-3, 100)

        file = rewritten(sparse_model, tmp_path / "m", in_sparse(change))
        try:
            scores = load_model(file).decision_function(sp.csr_array(X))
        except ModelFileError:
            refused += 1
        else:
            assert np.isfinite(scores).all()
    assert refused > 30


def arrays_of(members, shape):
    for name in members:
        if name.endswith(".npy") and np.load(io.BytesIO(members[name])).shape == shape:
            yield name


def written(array):
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def claiming(content, shape):
    """Return an array whose header claims another shape than its content has."""
    array = np.load(io.BytesIO(content))
    out = io.BytesIO()
    header = {"descr": array.dtype.str, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(out, header)
    return out.getvalue() + array.tobytes()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_coefficients_that_are_not_finite(sparse_model, tmp_path, value):
    def change(members):
        (name,) = arrays_of(members, (90, 4))
        coef = np.load(io.BytesIO(members[name])).copy()
        coef[7, 2] = value
        members[name] = written(coef)

    file = rewritten(sparse_model, tmp_path / "m", change)
    with pytest.raises(ModelFileError, match=r"coef_? contains values that are not finite"):
        load_model(file)


def test_models_that_are_not_finite_are_not_saved(problem, tmp_path):
    model = IMCCClassifier(n_clusters=4, kernel="linear", random_state=0).fit(*problem)
    model._model.coef[0, 0] = np.nan
    with pytest.raises(ModelFileError, match="not finite"):
        save_model(model, tmp_path / "m")
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("shape", [(10**12,), (90, 5), (-90, -4), (2**40, 2**40)])
def test_arrays_that_claim_another_size(sparse_model, tmp_path, shape):
    def change(members):
        (name,) = arrays_of(members, (90, 4))
        members[name] = claiming(members[name], shape)

    with pytest.raises(ModelFileError, match=r"is invalid|an invalid|cannot be loaded"):
        load_model(rewritten(sparse_model, tmp_path / "m", change))


def schema_change(change):
    def whole(members):
        schema = json.loads(members["schema.json"])
        change(schema)
        members["schema.json"] = json.dumps(schema)

    return whole


def nodes(schema, loader):
    waiting = [schema]
    while waiting:
        found = waiting.pop()
        if isinstance(found, dict):
            if found.get("__loader__") == loader:
                yield found
            waiting += reversed(found.values())
        elif isinstance(found, list):
            waiting += reversed(found)


@pytest.mark.parametrize(
    "nonsense", [b"{}", b"[]", b"{", b'{"__class__": "x", "__loader__": "Nope"}', b"[" * 100_000]
)
def test_a_schema_of_nonsense(sparse_model, tmp_path, nonsense):
    file = rewritten(sparse_model, tmp_path / "m", lambda m: m.update({"schema.json": nonsense}))
    with pytest.raises(ModelFileError, match="cannot be loaded"):
        load_model(file)


def test_one_object_described_in_two_ways(sparse_model, tmp_path):
    def change(schema):
        first, second, *_ = nodes(schema, "NdArrayNode")
        second["__id__"] = first["__id__"]

    with pytest.raises(ModelFileError, match="in two ways"):
        load_model(rewritten(sparse_model, tmp_path / "m", schema_change(change)))


def test_a_class_that_this_version_does_not_know(sparse_model, tmp_path):
    def change(schema):
        schema["__class__"] = "IMCCClassifierPlus"

    file = rewritten(sparse_model, tmp_path / "m", schema_change(change))
    for action in (load_model, untrusted_types):
        with pytest.raises(ModelFileError, match=r"'IMCCClassifierPlus'.*does not have"):
            action(file)


@pytest.mark.parametrize(
    ("module", "name"),
    [("imcc.persistence._file", "save_model"), ("os", "system"), ("imcc._utils.files", "save")],
)
def test_names_outside_the_table_are_not_loaded(sparse_model, tmp_path, module, name):
    def change(schema):
        schema["__module__"], schema["__class__"] = module, name

    file = rewritten(sparse_model, tmp_path / "m", schema_change(change))
    assert untrusted_types(file) == [f"{module}.{name}"]
    with pytest.raises(ModelFileError, match="nothing was loaded"):
        load_model(file)


# Trees


def tree_change(change):
    """Return a change of the first tree's nodes."""

    def whole(members):
        for name in members:
            if name.endswith(".npy"):
                found = np.load(io.BytesIO(members[name])).copy()
                if found.dtype.names and "left_child" in found.dtype.names:
                    change(found)
                    members[name] = written(found)
                    return
        raise AssertionError("there is no tree")

    return whole


def test_whole_trees_load(trees, problem):
    assert load_model(trees, trusted=[TREE]).predict(problem[0]).shape == (90, 4)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("left_child", 10**9),
        ("right_child", 10**9),
        ("left_child", 0),
        ("right_child", -7),
        ("left_child", -1),
        ("feature", 5),
        ("feature", 10**9),
        ("feature", -3),
    ],
)
def test_damaged_trees(trees, tmp_path, field, value):
    def change(found):
        found[field][0] = value

    file = rewritten(trees, tmp_path / "m", tree_change(change))
    with pytest.raises(ModelFileError, match="tree"):
        load_model(file, trusted=[TREE])


@pytest.mark.parametrize("claimed", [10**9, 0, -1])
def test_trees_that_claim_another_number_of_nodes(trees, problem, tmp_path, claimed):
    def change(schema):
        tree = next(nodes(schema, "TreeNode"))
        tree["content"]["content"]["node_count"]["content"] = json.dumps(claimed)
        del tree["content"]["content"]["node_count"]["__id__"]

    file = rewritten(trees, tmp_path / "m", schema_change(change))
    if claimed > 0:  # scikit-learn takes no more nodes than there are
        expected = load_model(trees, trusted=[TREE]).predict(problem[0])
        predicted = load_model(file, trusted=[TREE]).predict(problem[0])
        np.testing.assert_array_equal(predicted, expected)
        return
    with pytest.raises(ModelFileError, match=r"tree|cannot be loaded"):
        load_model(file, trusted=[TREE])


def test_trees_that_claim_another_number_of_outputs(trees, tmp_path):
    def change(schema):
        tree = next(nodes(schema, "TreeNode"))
        outputs = tree["__reduce__"]["args"]["content"][2]
        outputs["content"] = "100000000"
        outputs.pop("__id__", None)

    file = rewritten(trees, tmp_path / "m", schema_change(change))
    with pytest.raises(ModelFileError, match="tree"):
        load_model(file, trusted=[TREE])


def test_trees_of_more_features_than_the_model(trees, tmp_path):
    def change(schema):
        for tree in nodes(schema, "TreeNode"):
            features = tree["__reduce__"]["args"]["content"][0]
            features["content"] = "1000"
            features.pop("__id__", None)

    file = rewritten(trees, tmp_path / "m", schema_change(change))
    with pytest.raises(ModelFileError, match="a tree with 1000 features in a model with 5"):
        load_model(file, trusted=[TREE])


def test_the_process_survives(problem, tmp_path):
    """In a process of its own, which a wrong index would end: kernel ridge on sparse rows."""
    X, Y = problem
    model = KernelRidgeBaseline(cv=3).fit(sp.csr_matrix(X), Y)
    whole = save_model(model, tmp_path / "whole")

    def change(members):
        for name in [name for name in members if name.endswith(".npz")]:
            with np.load(io.BytesIO(members[name])) as archive:
                parts = {part: archive[part].copy() for part in archive.files}
            parts["indices"][:] = 2**31 - 1
            members[name] = packed(**parts)

    file = rewritten(whole, tmp_path / "m", change)
    code = (
        "import sys, scipy.sparse as sp\n"
        "from imcc.persistence import *\n"
        "assert load_model(sys.argv[2]).predict(sp.csr_matrix((3, 5))).shape == (3, 4)\n"
        "try:\n"
        "    load_model(sys.argv[1], trusted=['scipy.sparse._csr.csr_matrix'])\n"
        "except ModelFileError:\n"
        "    print('refused')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(file), str(whole)], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "refused\n"), done.stderr


@pytest.fixture(scope="module")
def corrected():
    X = np.random.RandomState(0).randn(200, 8)
    Y = np.column_stack([(X[:, 0] > 0.5) & (X[:, 1] > -0.5), X[:, 2] > 0]).astype(int)
    ensemble = KernelEnsembleClassifier(random_state=0)
    model = TreeCorrectedClassifier(ensemble, random_state=0).fit(X, Y)
    assert model.trees_
    return X, model


def test_whole_boosted_trees_load(corrected, tmp_path):
    X, model = corrected
    file = save_model(model, tmp_path / "m.skops")
    assert untrusted_types(file) == []
    scores = load_model(file).decision_function(X)
    np.testing.assert_array_equal(scores, model.decision_function(X))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("feature", lambda old: old - 1 - old.max()),
        ("feature", lambda old: old.astype(float)),
        ("threshold", lambda old: old[:, 1:]),
        ("value", lambda old: old[:, :-1]),
        ("value", lambda old: None),
        ("label", lambda old: -1),
        ("label", lambda old: "0"),
        ("features", lambda old: [-1, 0]),
        ("features", lambda old: ["x"]),
    ],
)
def test_damaged_boosted_trees(corrected, name, change):
    model = copy.deepcopy(corrected[1])
    check_model(model, None, "m.skops")
    label, trees = next(iter(model.trees_.items()))
    if name == "label":
        model.trees_[change(label)] = model.trees_.pop(label)
    elif name == "features":
        model.features = change(model.features)
    else:
        object.__setattr__(trees, name, change(getattr(trees, name)))
    with pytest.raises(ModelFileError, match="invalid boosted trees"):
        check_model(model, None, "m.skops")
