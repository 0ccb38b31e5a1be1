import datetime
import importlib
import io
import json
import os
import pickle
import random
import re
import subprocess
import sys
import zipfile

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import KMeans
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC

import imcc
from imcc import IMCCClassifier, IMCCClassifierCV
from imcc.datasets import Dataset
from imcc.estimators import TunedThresholds
from imcc.persistence import (
    ModelFileError,
    UntrustedModelError,
    load_model,
    read_card,
    save_model,
    untrusted_types,
)
from imcc.persistence._card import FORMAT
from imcc.persistence._file import _digest

pytest.importorskip("skops")

GRID = {"alphas": [1.0], "betas": [0.1, 1.0], "gammas": [0.1], "n_clusters": [4], "cv": 3}
GRID["grid"] = "paper"  # one width
SEARCH = TunedThresholds(IMCCClassifierCV(**GRID, random_state=0), cv=3)


@pytest.fixture(scope="module")
def data(small_problem):
    X, Y, *_ = small_problem
    return Dataset(X, Y, list("abcde"), list("pqrs"), "toy")


@pytest.fixture(scope="module")
def saved(data, tmp_path_factory):
    model = IMCCClassifier(n_clusters=4, random_state=0).fit(data.X, data.Y)
    return save_model(model, tmp_path_factory.mktemp("models") / "m.skops", data)


def test_vectors_of_classes(data, tmp_path):
    words = np.array(["cat", "dog", "emu"])[data.Y[:, 0] + data.Y[:, 1]]
    for y, names in ((words, ("cat", "dog", "emu")), (data.Y[:, 0], ("1",))):
        model = IMCCClassifier(n_clusters=4, random_state=0).fit(data.X, y)
        file = save_model(model, tmp_path / "m.skops")
        np.testing.assert_array_equal(load_model(file).predict(data.X), model.predict(data.X))
        assert read_card(file).label_names == names
        assert read_card(file).feature_names == ("x0", "x1", "x2", "x3", "x4")


def test_card(saved, data):
    card = read_card(saved)
    assert card.imcc_version == imcc.__version__
    assert set(card.versions) == {"python", "numpy", "scipy", "scikit-learn", "skops"}
    made = datetime.datetime.fromisoformat(card.created)
    assert abs(datetime.datetime.now(datetime.UTC) - made) < datetime.timedelta(minutes=10)
    assert (card.feature_names, card.label_names) == (tuple("abcde"), tuple("pqrs"))
    assert (card.data_name, card.n_rows) == ("toy", 90)
    assert card.fingerprint == data.fingerprint()
    assert card.params["n_clusters"] == 4
    assert card.model == "IMCCClassifier"
    assert json.loads(json.dumps(card.to_dict()))["format"] == FORMAT


def test_card_of_a_search(data, tmp_path):
    model = make_pipeline(StandardScaler(), SEARCH).fit(data.X, data.Y)
    card = read_card(save_model(model, tmp_path / "m", data))
    search = model[-1].estimator_
    assert card.metrics == {
        "cross-validated average_precision": search.best_score_,
        "cross-validated f1, thresholds at 0": model[-1].default_score_,
        "cross-validated f1, thresholds chosen": model[-1].best_score_,
    }
    assert card.params == search.best_params_
    assert card.model == "StandardScaler -> TunedThresholds(IMCCClassifierCV)"
    several = IMCCClassifierCV(**GRID, random_state=0).set_params(
        scoring=["ranking_loss", "coverage"], refit=False
    )
    several.fit(data.X, data.Y)  # there is no best setting
    assert read_card(save_model(several, tmp_path / "m", data)).metrics == {}
    given = read_card(save_model(model, tmp_path / "m", data, metrics={"mine": 1}))
    assert given.metrics == {"mine": 1.0}
    other = Dataset(data.X, data.Y[:, :1], list("abcde"), ["one"])
    with pytest.raises(ValueError, match="data has 1 labels, but the model has 4"):
        save_model(model, tmp_path / "m", other)


def test_names_of_frames(data, tmp_path):
    X, Y = pd.DataFrame(data.X, columns=list("abcde")), pd.DataFrame(data.Y, columns=list("pqrs"))
    plain = IMCCClassifier(n_clusters=4, random_state=0)
    for model in (plain, make_pipeline(StandardScaler(), TunedThresholds(plain, cv=3))):
        card = read_card(save_model(model.fit(X, Y), tmp_path / "m"))
        assert (card.feature_names, card.label_names) == (tuple("abcde"), tuple("pqrs"))
        assert card.fingerprint == ""
        other = Dataset(data.X, data.Y, list("vwxyz"), list("pqrs"))
        with pytest.raises(ValueError, match="other names of features"):
            save_model(model, tmp_path / "m", other)


# Trust


class Mine(ClusterMixin, BaseEstimator):
    loaded = 0

    def fit(self, X, y=None):
        self.labels_ = np.arange(len(X)) % 3
        return self

    def __setstate__(self, state):
        Mine.loaded += 1
        self.__dict__.update(state)


def similarity(a, b):
    return float(np.exp(-np.abs(a - b).sum()))


@pytest.fixture
def foreign(data, tmp_path, monkeypatch):
    # skops looks types up by their module's name.
    monkeypatch.setitem(sys.modules, __name__, sys.modules.get(__name__) or _this_module())
    model = IMCCClassifier(clusterer=Mine(), random_state=0).fit(data.X, data.Y)
    return save_model(model, tmp_path / "m.skops", data)


def _this_module():
    import types

    module = types.ModuleType(__name__)
    module.Mine, module.similarity = Mine, similarity
    return module


def test_types_of_others_are_named_before_anything_runs(foreign, data):
    name = f"{__name__}.Mine"
    Mine.loaded = 0
    assert untrusted_types(foreign) == [name]
    with pytest.raises(UntrustedModelError, match="nothing was loaded") as caught:
        load_model(foreign)
    assert caught.value.types == (name,)
    with pytest.raises(UntrustedModelError):
        load_model(foreign, trusted=["another.Type"])
    assert Mine.loaded == 0
    assert load_model(foreign, trusted=[name]).predict(data.X).shape == (90, 4)
    assert Mine.loaded > 0
    with pytest.raises(TypeError, match="list of names"):
        load_model(foreign, trusted=name)


def test_functions_of_imcc_are_not_trusted():
    from imcc.persistence._trust import TRUSTED

    for name in set().union(*TRUSTED.values()):
        module, _, attribute = name.rpartition(".")
        assert isinstance(getattr(importlib.import_module(module), attribute), type)
        assert not re.search("datasets|persistence", name)


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        (SVC(), "sklearn.svm._classes.SVC"),
        (make_pipeline(MinMaxScaler(), SVC()), "sklearn.preprocessing._data.MinMaxScaler"),
        (KNeighborsClassifier(algorithm="brute"), "sklearn.neighbors._classification."),
        (DummyClassifier(), "sklearn.dummy.DummyClassifier"),
        (IMCCClassifier(n_clusters=3, clusterer=KMeans(3)), "sklearn.cluster._kmeans.KMeans"),
        (ExtraTreesClassifier(3, random_state=0), "sklearn.tree._tree.Tree"),
    ],
)
def test_other_estimators_need_trust(data, tmp_path, model, kind):
    """skops trusts all of scikit-learn, but an SVC of a file can end the process."""
    file = save_model(model.fit(data.X, data.Y[:, 0]), tmp_path / "m.skops")
    assert any(name.startswith(kind) for name in untrusted_types(file))
    with pytest.raises(UntrustedModelError):
        load_model(file)
    again = load_model(file, trusted=untrusted_types(file))
    np.testing.assert_array_equal(again.predict(data.X), model.predict(data.X))


def test_what_cannot_be_saved(data, tmp_path):
    file = tmp_path / "m.skops"
    file.write_bytes(b"what was there before")
    model = IMCCClassifier(n_clusters=3, kernel=lambda a, b: float(a @ b)).fit(data.X, data.Y)
    with pytest.raises(ModelFileError, match="not lambdas"):
        save_model(model, file, data)
    with pytest.raises(NotFittedError):
        save_model(IMCCClassifier(), file)
    assert file.read_bytes() == b"what was there before"
    assert os.listdir(tmp_path) == ["m.skops"]


class Evil:
    def __reduce__(self):
        return (os.mkdir, (os.environ["EVIL"],))


@pytest.mark.parametrize("protocol", [0, pickle.HIGHEST_PROTOCOL])
def test_pickles_are_refused_by_content(tmp_path, monkeypatch, protocol):
    trap = tmp_path / "sprung"
    monkeypatch.setenv("EVIL", str(trap))
    file = tmp_path / "m.skops"
    file.write_bytes(pickle.dumps(Evil(), protocol))
    with pytest.raises(ModelFileError, match=r"pickle.*not supported"):
        load_model(file)
    assert not trap.exists()


@pytest.mark.parametrize("compress", [0, ("zlib", 3), ("gzip", 3)])
def test_joblib_files_are_refused(tmp_path, data, compress):
    file = tmp_path / "m.skops"
    joblib.dump(IMCCClassifier(n_clusters=3).fit(data.X, data.Y), file, compress=compress)
    for action in (load_model, read_card, untrusted_types):
        with pytest.raises(ModelFileError, match="pickle"):
            action(file)


def archive(**members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, content in members.items():
            file.writestr(name.replace("_dot_", "."), content)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"a,b\n1,2\n", "not a model file"),
        (archive(data_dot_pkl=b"x"), "pickles can run"),
        (archive(schema_dot_json=b"{}"), "not a model file"),
        (archive(other=b"x"), "zip archive"),
        (archive(imcc_dot_json=b"no json"), "damaged"),
        (archive(imcc_dot_json=b"[" * 100_000), "damaged"),
        (archive(imcc_dot_json=b"[]"), "card is not an object"),
        (archive(imcc_dot_json=b"{}"), "no format version"),
        (archive(imcc_dot_json=b'{"format": 1}'), "imcc_version"),
        (b"PK\x03\x04 and then nothing", "damaged"),
    ],
)
def test_other_files(tmp_path, content, message):
    file = tmp_path / "m.skops"
    file.write_bytes(content)
    with pytest.raises(ModelFileError, match=message) as caught:
        load_model(file)
    assert str(file) in str(caught.value)


def test_no_file_and_a_folder(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_model(tmp_path / "nope")
    with pytest.raises(ModelFileError, match="folder"):
        load_model(tmp_path)


# Versions


def with_card(saved, target, change):
    """Write the file again with another card, and the checksum of the one before."""
    with zipfile.ZipFile(saved) as old, zipfile.ZipFile(target, "w") as new:
        for info in old.infolist():
            content = old.read(info)
            if info.filename == "imcc.json":
                card = json.loads(content)
                change(card)
                content = json.dumps(card).encode()
            new.writestr(info.filename, content)
    return target


def resealed(file):
    """Give a file the checksum of its content."""
    with zipfile.ZipFile(file) as archive:
        card = json.loads(archive.read("imcc.json"))
        del card["sha256"]
        digest = _digest(archive, card)
    return with_card(file, file.with_name("resealed"), lambda card: card.update(sha256=digest))


@pytest.mark.parametrize(("step", "remedy"), [(1, "install a newer imcc"), (-1, "fit the model")])
def test_other_formats(saved, tmp_path, step, remedy):
    def change(card):
        card.update(format=FORMAT + step, imcc_version="99.0")

    file = with_card(saved, tmp_path / "new.skops", change)
    with pytest.raises(ModelFileError, match=rf"imcc 99.0 in format {FORMAT + step}.*{remedy}"):
        load_model(file)


def test_a_newer_version_of_the_same_format_may_say_more(saved, tmp_path):
    file = resealed(with_card(saved, tmp_path / "m", lambda card: card.update(mood="good")))
    assert read_card(file) == read_card(saved)
    load_model(file)


@pytest.mark.parametrize(
    "change",
    [
        {"label_names": "pqrs"},
        {"label_names": [1, 2, 3, 4]},
        {"metrics": []},
        {"metrics": {"accuracy": "good"}},
        {"n_rows": "many"},
        {"feature_names": ["a"]},
        {"label_names": ["p", "q", "r"]},
        {"format": "1"},
    ],
    ids=str,
)
def test_cards_that_make_no_sense(saved, tmp_path, change):
    file = with_card(saved, tmp_path / "m", lambda card: card.update(change))
    for again in (file, resealed(file)):
        with pytest.raises(ModelFileError, match="damaged"):
            load_model(again)


@pytest.mark.parametrize("change", [{"sha256": 3}, {"sha256": "0" * 64}, {"data_name": "other"}])
def test_the_checksum_is_of_the_whole_file(saved, tmp_path, change):
    file = with_card(saved, tmp_path / "m", lambda card: card.update(change))
    with pytest.raises(ModelFileError, match="checksum"):
        read_card(file)


# Damage


def test_truncated_files(saved, tmp_path):
    whole = saved.read_bytes()
    file = tmp_path / "m.skops"
    lengths = {*range(0, 64, 4), *range(len(whole) - 64, len(whole), 4)}
    lengths |= set(random.Random(0).sample(range(len(whole)), 30))
    for length in sorted(lengths):
        file.write_bytes(whole[:length])
        with pytest.raises(ModelFileError):
            load_model(file)


def test_flipped_bits(saved, data, tmp_path):
    """Either an error that says so, or the very same model (a bit in a date, say)."""
    whole = bytearray(saved.read_bytes())
    file = tmp_path / "m.skops"
    expected = load_model(saved).decision_function(data.X)
    rng = random.Random(1)
    places = [*rng.sample(range(len(whole)), 60), *range(len(whole) - 400, len(whole), 8)]
    failed = 0
    for place in places:
        whole[place] ^= 1 << rng.randrange(8)
        file.write_bytes(whole)
        try:
            np.testing.assert_array_equal(load_model(file).decision_function(data.X), expected)
        except ModelFileError:
            failed += 1
        whole[place] = saved.read_bytes()[place]
    assert failed > 0.5 * len(places)


def test_packed_members_are_refused(saved, tmp_path):
    file = tmp_path / "bomb.skops"
    with zipfile.ZipFile(saved) as old, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as new:
        for info in old.infolist():
            new.writestr(info.filename, old.read(info))
    with pytest.raises(ModelFileError, match="compressed"):
        load_model(file)


# Writing


def test_writing_is_atomic(saved, data, tmp_path, monkeypatch):
    model = load_model(saved)
    file = tmp_path / "m.skops"
    file.write_bytes(b"before")

    def no_space(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", no_space)
    with pytest.raises(OSError, match="No space"):
        save_model(model, file, data)
    assert file.read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["m.skops"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_devices_are_written_to_and_stay(saved, data):
    with pytest.raises(OSError, match="No space"):
        save_model(load_model(saved), "/dev/full", data)
    assert not os.path.isfile("/dev/full")


def test_folders(saved, data, tmp_path):
    with pytest.raises(IsADirectoryError):
        save_model(load_model(saved), tmp_path, data)
    with pytest.raises(FileNotFoundError, match="no folder"):
        save_model(load_model(saved), tmp_path / "no" / "m.skops", data)


def test_array_libraries_are_not_imported_to_save_a_model(tmp_path):
    code = f"""
import sys
from imcc.persistence import save_model
from imcc import IMCCClassifier
model = IMCCClassifier(n_clusters=1, kernel="linear").fit([[0.], [1.]], [[0], [1]])
save_model(model, {str(tmp_path / "m.skops")!r})
assert not {{"torch", "cupy", "dask"}} & {{*sys.modules}}
assert None not in sys.modules.values()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_without_skops_the_message_says_what_to_install(saved, tmp_path, monkeypatch):
    model = load_model(saved)
    for name in ("skops", "skops.io"):
        monkeypatch.setitem(sys.modules, name, None)
    for action in (load_model, lambda file: save_model(model, file)):
        with pytest.raises(ImportError, match="pip install skops"):
            action(saved)
