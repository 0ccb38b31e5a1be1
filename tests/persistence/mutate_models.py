"""Load model files with changed numbers, shapes and types, in a process with little memory.

    python tests/persistence/mutate_models.py --count 1000 --seed 0

Each file has a checksum that fits its content.  It must be refused with a ModelFileError, or give a
model that predicts or raises an error; a signal, a lack of memory, too deep a recursion or ten
seconds without an answer is a failure.
"""

import argparse
import copy
import io
import json
import math
import random
import resource
import signal
import tempfile
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from imcc import IMCCClassifier, KernelEnsembleClassifier
from imcc.baselines import LIFT, LLSFCV, MAHR, BinaryRelevanceSVM, EnsembleClassifierChains
from imcc.estimators import MultilabelCalibrator, TunedThresholds
from imcc.persistence import ModelFileError, load_model, save_model
from imcc.persistence._file import _digest
from imcc.tables import TableClassifier

SECONDS = 10
MEMORY = 3 * 2**30
NUMBERS = (0, 1, -1, 2, 5, 625, 2**31 - 1, -(2**31), 10**9, 2**63 - 1, 2**64, 0.5, 1e308, math.nan)


def fitted_models():
    """Return models of trusted classes only, each with rows to predict."""
    rng = np.random.RandomState(0)
    X = np.maximum(rng.randn(90, 5), 0)
    Y = (X[:, :3] + rng.randn(90, 3) > 0.5).astype(int)
    words = np.array(["red", "green", "blue", "dark", "light"])
    texts = [" ".join(words[row > 0.3]) + " paint" for row in X]
    table = pd.DataFrame(
        {
            "size": np.where(np.arange(90) % 7 == 0, np.nan, X[:, 0]),
            "town": rng.choice(["Ulm", "Bonn", "Trier", "Hof"], 90, p=[0.5, 0.3, 0.17, 0.03]),
            "new": rng.choice(["yes", "no"], 90),
            "sold": pd.date_range("2024-01-01", periods=90, freq="31h"),
            "note": texts,
            "tags": np.where(Y[:, 0], "a|b", "b") + np.where(Y[:, 1], "|c", "|d"),
        }
    )
    imcc = {"n_clusters": 4, "random_state": 0}
    ensemble = KernelEnsembleClassifier(random_state=0)
    on_rows = {
        "rbf": IMCCClassifier(n_clusters=4, random_state=np.random.RandomState(0)),
        "laplacian": IMCCClassifier(**imcc, kernel="laplacian"),
        "nystroem": IMCCClassifier(**imcc, approximation="nystroem", n_components=9),
        "thresholds": TunedThresholds(IMCCClassifier(**imcc), cv=3),
        "isotonic": MultilabelCalibrator(IMCCClassifier(**imcc), cv=3, method="isotonic"),
        "grid search": GridSearchCV(
            make_pipeline(StandardScaler(with_mean=False), IMCCClassifier(**imcc)),
            {"imccclassifier__beta": [0.1, 1.0]},
            cv=2,
        ),
        "ensemble": KernelEnsembleClassifier(views=("raw", "ranks", "tfidf"), random_state=0),
        "BRsvm": BinaryRelevanceSVM(),
        "ECC": EnsembleClassifierChains(random_state=0),
        "MAHR": MAHR(n_rounds=5),
        "LIFT": LIFT(random_state=0),
        "LLSFCV": LLSFCV(budget=3, random_state=0),
    }
    models = {}
    for name, model in on_rows.items():
        rows = sp.csr_array(X) if len(models) % 2 else X
        models[name] = model.fit(rows, Y), rows
    text = make_pipeline(TfidfVectorizer(), copy.copy(ensemble))
    models["text"] = text.fit(texts, Y), texts
    models["table"] = TableClassifier(random_state=0).fit(table, "tags"), table.drop(columns="tags")
    return models


def mutated(members, chance):
    """Return the members of an archive with one to three changes, and what they are."""
    members = dict(members)
    changes = []
    for _ in range(chance.choice([1, 1, 2, 3])):
        # In the order of the archive: names are addresses in memory, which no seed repeats.
        name = chance.choice([name for name in members if name != "imcc.json"])
        if name.endswith(".npy"):
            members[name] = written(np.save, changed_array(members[name], chance))
        elif name.endswith(".npz"):
            with np.load(io.BytesIO(members[name])) as archive:
                parts = {part: written(np.save, archive[part]) for part in archive.files}
            part = chance.choice(sorted(parts))
            parts = {key: np.load(io.BytesIO(parts[key])) for key in parts}
            parts[part] = changed_array(written(np.save, parts[part]), chance)
            members[name] = written(np.savez, **parts)
        if name == "schema.json" or chance.random() < 0.5:
            name = "schema.json"
            schema = json.loads(members[name])
            name += change_schema(schema, chance)
            members["schema.json"] = json.dumps(schema)
        changes.append(name)
    return members, changes


def written(save, *arrays, **parts):
    buffer = io.BytesIO()
    save(buffer, *arrays, **parts)
    return buffer.getvalue()


def changed_array(content, chance):
    array = np.load(io.BytesIO(content)).copy()
    kind = chance.choice(["value", "value", "value", "all", "cut", "shape", "type"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind in ("value", "all") and array.size and array.dtype.kind in "biuf":
            value = np.array(chance.choice(NUMBERS), float).astype(array.dtype)
            place = ... if kind == "all" else chance.randrange(array.size)
            np.put(array, range(array.size) if place is ... else place, value)
        elif kind == "cut" and array.ndim:
            array = array[: chance.randrange(len(array) + 1)]
        elif kind == "shape":
            array = array.reshape(chance.choice([(-1,), (-1, 1), (1, -1), array.shape[::-1]]))
        elif kind == "type" and array.dtype.kind in "biuf":
            array = array.astype(chance.choice(["i8", "f4", ">f8", "c16", "U3", "?", "M8[s]"]))
    return array


def change_schema(schema, chance):
    """Change a number, swap two parts or replace one; return where."""
    places = []
    waiting = [(schema, "")]
    while waiting:
        found, where = waiting.pop()
        for key, part in found.items() if isinstance(found, dict) else enumerate(found):
            places.append((found, key, f"{where}/{key}"))
            if isinstance(part, (dict, list)):
                waiting.append((part, f"{where}/{key}"))
    kind = chance.choice(["number", "number", "number", "number", "swap", "drop"])
    if kind == "number":
        numbers = [
            (node, key, where) for node, key, where in places if is_number(node, key, node[key])
        ]
        node, key, where = chance.choice(numbers)
        value = chance.choice([*NUMBERS, None, "text"])
        node[key] = json.dumps(value) if isinstance(node[key], str) else value
        node.pop("__id__", None)
    else:
        node, key, where = chance.choice(places)
        if kind == "swap":
            other, there, _ = chance.choice(places)
            node[key] = copy.deepcopy(other[there])
        else:
            del node[key]
    return f"{where} {kind}"


def is_number(node, key, value):
    if isinstance(node, dict) and node.get("__loader__") == "JsonNode" and key == "content":
        return str(value)[:1] in "-0123456789N"
    return isinstance(value, int)


def tried(file, rows):
    """Return what a changed model does: "refused", "failed" or "used"."""
    try:
        model = load_model(file)
    except ModelFileError:
        return "refused"
    try:
        assert len(model.predict(rows)) == (rows.shape[0] if hasattr(rows, "shape") else len(rows))
        repr(model)
    except (MemoryError, RecursionError, SystemError):
        raise
    except Exception:
        return "failed"
    return "used"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    chance = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as folder:
        valid = []
        for name, (model, rows) in fitted_models().items():
            file = save_model(model, Path(folder, "valid.skops"))
            with zipfile.ZipFile(file) as archive:
                members = {name: archive.read(name) for name in archive.namelist()}
            valid.append((name, members, rows))
        size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))
        outcomes = {"refused": 0, "failed": 0, "used": 0}
        for number in range(arguments.count):
            name, members, rows = valid[number % len(valid)]
            members, changes = mutated(members, chance)
            card = json.loads(members.pop("imcc.json"))
            del card["sha256"]
            file = Path(folder, "changed.skops")
            with zipfile.ZipFile(file, "w") as archive:
                for part, content in members.items():
                    archive.writestr(part, content)
                card["sha256"] = _digest(archive, card)
                archive.writestr("imcc.json", json.dumps(card))
            print(f"{number}: {name}, {changes}", flush=True)
            signal.alarm(SECONDS)  # ends the process
            outcomes[tried(file, rows)] += 1
            signal.alarm(0)
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main()
