"""Files whose checksum is right and whose content is not: errors, no crash, no nonsense."""

import io
import json
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import ExtraTreeClassifier

from imcc import IMCCClassifier, KernelEnsembleClassifier
from imcc.persistence import ModelFileError, load_model, save_model, untrusted_types
from imcc.persistence._checks import _has_valid_indices
from imcc.persistence._file import _digest
from imcc.tables import TableClassifier

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
    del card["sha256"]
    with zipfile.ZipFile(target, "w") as new:
        for name, content in members.items():
            new.writestr(name, content)
        card["sha256"] = _digest(new, card)
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
    "pointers whose differences overflow": setting(
        "indptr", slice(1, 4), [2**31 - 1, -(2**31), -1]
    ),
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
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_sparse_matrices(sparse_model, tmp_path, name):
    file = rewritten(sparse_model, tmp_path / "m", in_sparse(DAMAGE[name]))
    with pytest.raises(ModelFileError, match=r"is invalid|an invalid|cannot be loaded"):
        load_model(file, trusted=["scipy.sparse._csr.csr_array"])  # trust does not help


def test_a_sparse_matrix_that_is_packed(sparse_model, tmp_path):
    def change(members):
        (name,) = (name for name in members if name.endswith(".npz"))
        with np.load(io.BytesIO(members[name])) as archive:
            buffer = io.BytesIO()
            np.savez_compressed(buffer, **archive)
        members[name] = buffer.getvalue()

    with pytest.raises(ModelFileError, match="is invalid"):
        load_model(rewritten(sparse_model, tmp_path / "m", change))


def test_a_sparse_matrix_under_another_name_is_not_left_unchecked(sparse_model, tmp_path):
    def change(members):
        in_sparse(setting("indices", 3, 2**30))(members)
        (name,) = (name for name in members if name.endswith(".npz"))
        members["x.bin"] = members.pop(name)
        members["schema.json"] = members["schema.json"].replace(name.encode(), b"x.bin")

    with pytest.raises(ModelFileError, match="suffix"):
        load_model(rewritten(sparse_model, tmp_path / "m", change))


def test_a_tree_beside_a_vocabulary_does_not_hide_it(problem):
    tree = ExtraTreeClassifier(random_state=0).fit(*problem).tree_
    vectorizer = CountVectorizer().fit(["a word or two"])
    vectorizer.tree_, vectorizer.n_features_in_ = tree, tree.n_features
    assert _has_valid_indices(vectorizer)
    vectorizer.vocabulary_["word"] = 10**6
    assert not _has_valid_indices(vectorizer)


@pytest.mark.parametrize(
    ("name", "value"), [("used", 10**6), ("feature", -1), ("output", 9), ("threshold", None)]
)
def test_trees_of_an_ensemble_look_at_columns_that_are_there(name, value):
    X = np.random.RandomState(0).randn(300, 12)
    Y = ((X[:, :2] > 0.5) & (X[:, 2:4] > -0.5)).astype(int)
    model = KernelEnsembleClassifier(views=("raw",), random_state=0).fit(X, Y)._model
    assert model.trees is not None
    assert _has_valid_indices(model)
    array = getattr(model.trees.trees, name)
    damaged = array[:-1] if value is None else np.where(array == array.max(), value, array)
    trees = replace(model.trees.trees, **{name: damaged})
    assert not _has_valid_indices(replace(model, trees=replace(model.trees, trees=trees)))
    assert not _has_valid_indices(replace(model, anchors=None))


def test_random_damage_never_crashes(sparse_model, problem, tmp_path):
    """Whatever numbers are in the sparse matrix: an error, or a model that can be used."""
    rng = np.random.default_rng(0)
    X = problem[0]
    refused = 0
    for _ in range(30):

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
    assert refused > 15


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


def list_of(parts, number):
    return {
        **{"__class__": "list", "__module__": "builtins", "__loader__": "ListNode"},
        **{"__id__": number, "content": parts},
    }


def number_of(value):
    return {
        **{"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode"},
        **{"__id__": None, "content": json.dumps(value), "is_json": True},
    }


@pytest.mark.parametrize("loader", ["ListNode", "CachedNode"])
def test_lists_that_double_with_every_level(sparse_model, tmp_path, loader):
    """skops would take minutes for this file of a few kilobytes: 2 to the power of 60 lists."""

    def change(schema):
        nested = list_of([], 10_000)
        for number in range(10_001, 10_060):
            again = {**list_of([], number - 1), "__loader__": loader}
            nested = list_of([nested, again], number)
        schema["content"]["content"]["kernel_params"] = nested

    file = rewritten(sparse_model, tmp_path / "m", schema_change(change))
    for action in (load_model, untrusted_types):
        with pytest.raises(ModelFileError, match="in two ways"):
            action(file)


@pytest.mark.parametrize("number", [0, 10_000, None])
def test_an_array_that_is_read_many_times(sparse_model, tmp_path, number):
    def change(schema):
        array = next(nodes(schema, "NdArrayNode"))
        copies = [{**array, "__id__": number} for _ in range(3)]
        schema["content"]["content"]["kernel_params"] = list_of(copies, 10_001)

    with pytest.raises(ModelFileError, match="an array belongs to two objects"):
        load_model(rewritten(sparse_model, tmp_path / "m", schema_change(change)))


@pytest.mark.parametrize("depth", [50, 150, 5000])
def test_lists_that_are_nested_deeply(sparse_model, tmp_path, depth):
    """Printing or copying such a model would exceed the recursion limit."""

    def as_entries(schema):
        nested = list_of([], None)
        for _ in range(depth):
            nested = list_of([nested], None)
        schema["content"]["content"]["kernel_params"] = nested

    def as_text(schema):
        entry = schema["content"]["content"]["kernel_params"]
        entry["content"] = " " + "[" * depth + "]" * depth
        del entry["__id__"]

    with pytest.raises(ModelFileError, match="a list as text"):
        load_model(rewritten(sparse_model, tmp_path / "m", schema_change(as_text)))
    if depth == 5000:  # json cannot write it
        text = json.dumps(list_of(["HERE"], None)).partition('"HERE"')
        nested = text[0] * depth + text[2] * depth
        whole = {"schema.json": f'{{"__loader__": "ListNode", "content": [{nested}]}}'}
        file = rewritten(sparse_model, tmp_path / "m", lambda members: members.update(whole))
    else:
        file = rewritten(sparse_model, tmp_path / "m", schema_change(as_entries))
    if depth == 50:
        assert "kernel_params=[[[" in repr(load_model(file))
        return
    with pytest.raises(ModelFileError, match=r"nested too deeply|cannot be loaded"):
        load_model(file)


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
    with pytest.raises(ModelFileError, match="invalid ExtraTreeClassifier"):
        load_model(file, trusted=[TREE])


# Indices of other compiled code


@pytest.fixture(scope="module")
def table_model(problem, tmp_path_factory):
    pandas = pytest.importorskip("pandas")
    X, Y = problem
    towns = np.array(["Ulm", "Bonn", "Hof"])
    table = pandas.DataFrame(
        {
            "town": towns[(X[:, 0] > 0.5).astype(int) + (np.arange(90) == 5)],
            "note": [" ".join(towns[row[:3] > 0.2]) + " and so on" for row in X],
            "tag": np.where(Y[:, 0], "a", "b"),
        }
    )
    model = TableClassifier(IMCCClassifier(n_clusters=4, random_state=0), kinds={"note": "text"})
    model.fit(table, "tag")
    return save_model(model, tmp_path_factory.mktemp("models") / "m.skops"), table


def attributes(schema, name):
    """Yield the entries of an attribute, wherever it occurs."""
    for node in nodes(schema, "DictNode"):
        if name in node["content"]:
            yield node["content"][name]


@pytest.mark.parametrize("column", [10**9, -1, 3, 0.5])
def test_terms_in_columns_that_do_not_exist(table_model, tmp_path, column):
    def change(schema):
        for vocabulary in attributes(schema, "vocabulary_"):
            vocabulary["content"][next(iter(vocabulary["content"]))] = number_of(column)

    file = rewritten(table_model[0], tmp_path / "m", schema_change(change))
    with pytest.raises(ModelFileError, match="an invalid TfidfVectorizer"):
        load_model(file)


def test_categories_in_columns_that_do_not_exist(table_model, tmp_path):
    file, table = table_model

    def change(schema):
        (places,) = attributes(schema, "places")
        places["content"]["Ulm"] = number_of(10**9)

    model = load_model(rewritten(file, tmp_path / "m", schema_change(change)))
    with pytest.raises(ValueError, match="damaged"):
        model.decision_function(table)


@pytest.mark.parametrize("place", [10**9, -5, 625])
def test_random_generators_that_read_elsewhere(problem, tmp_path, place):
    model = IMCCClassifier(n_clusters=4, random_state=np.random.RandomState(0)).fit(*problem)
    whole = save_model(model, tmp_path / "whole")
    assert load_model(whole).random_state.randint(9) == model.random_state.randint(9)

    def change(schema):
        for node in nodes(schema, "DictNode"):
            if "pos" in node["content"]:
                node["content"]["pos"] = number_of(place)

    with pytest.raises(ModelFileError, match="an invalid RandomState"):
        load_model(rewritten(whole, tmp_path / "m", schema_change(change)))


def test_text_that_is_not_unicode(problem, tmp_path):
    X, Y = problem
    model = IMCCClassifier(n_clusters=4, random_state=0).fit(X, np.where(Y[:, 0], "yes", "no"))

    def change(members):
        for name in [name for name in members if name.endswith(".npy")]:
            array = np.load(io.BytesIO(members[name])).copy()
            if array.dtype.kind == "U":
                array.view(np.uint32)[0] = 2**32 - 1
                members[name] = written(array)

    with pytest.raises(ModelFileError, match="the text in the array"):
        load_model(rewritten(save_model(model, tmp_path / "whole"), tmp_path / "m", change))


def test_no_more_processes_than_processors(problem, tmp_path):
    def change(schema):
        for jobs in attributes(schema, "n_jobs"):
            jobs |= number_of(100_000)

    columns = ColumnTransformer([("all", StandardScaler(), [0, 1])])
    model = make_pipeline(columns, IMCCClassifier(n_clusters=4, random_state=0)).fit(*problem)
    path = save_model(model, tmp_path / "whole")
    model = load_model(rewritten(path, tmp_path / "m", schema_change(change)))
    assert model[0].n_jobs == -1


@pytest.mark.slow
def test_changed_numbers_never_end_the_process():
    """In a process of its own; at most three numbers, shapes or types of each file are changed."""
    script = Path(__file__).with_name("mutate_models.py")
    command = [sys.executable, str(script), "--count", "80", "--seed", "2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
    outcomes = json.loads(done.stdout.splitlines()[-1])
    assert min(outcomes.values()) > 3
