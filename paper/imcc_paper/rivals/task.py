"""One data set and method: the search, the out-of-fold scores, and the three splits."""

from __future__ import annotations

import json
import math
import os
import pickle
import resource
import signal
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

from imcc.datasets import Dataset, list_datasets, load_dataset, paper_splits, read, split_seed
from imcc.estimators import choose_thresholds
from imcc.metrics import evaluate, log_loss, macro_average_precision, macro_f1
from imcc_paper._measured import machine
from imcc_paper.rivals.fitting import as_rows, loss
from imcc_paper.rivals.methods import ENSEMBLE, RIVALS, STACK, STACKED, Held, Setting
from imcc_paper.rivals.stacking import stack_weights

SPLITS = (0, 1, 2)
SEED = 0  # of the reported splits, as in the paper's experiment
TUNING_SEED = 2000
TUNING_ROWS = 8000
HELD_OUT = 0.25
MANY_ROWS, MOST_TRAINING, MOST_TEST = 20_000, 16_000, 8_000
METRICS = (
    "average_precision",
    "macro_average_precision",
    "log_loss",
    "macro_f1",
    "macro_f1_tuned",
    "ranking_loss",
    "one_error",
)
SECONDS = ("tune_seconds", "oof_seconds", "fit_seconds", "predict_seconds")
WHOLE = ("split", "n_settings", "n_train", "n_test", "n_features", "n_labels")
WORDS = ("dataset", "method", "status", "remark", "settings", "environment")
COLUMNS = (
    *("dataset", "method", "split", "status", "remark", *METRICS, *SECONDS, "n_settings"),
    *("settings", "n_train", "n_test", "n_features", "n_labels", "cap", "fit_cap", "environment"),
)
# Seconds of the clock per CPU second of a limit, since other programs may use the processor too.
_PATIENCE = 40
#: The fits after the search, each in a process of its own.
PARTS = (*(f"oof_{fold}" for fold in range(3)), *(f"split_{split}" for split in SPLITS))
DONE, OVER, FAILED = "done", "over the cap", "failed"


class Limits(NamedTuple):
    """Limits of a task: settings, CPU seconds of the search, and of one fit."""

    settings: int = 12
    cap: float = 60.0
    fit_cap: float = 300.0


class OverLimitError(Exception):
    """A computation needed more CPU seconds than it had."""


class NoTimeError(Exception):
    """The program is to end before the next computation."""


def load(name: str) -> Dataset:
    """Return a data set by its name in imcc, of ``outside_sets``, or of a file."""
    if name in list_datasets("all"):
        return load_dataset(name)
    if Path(name).is_file():
        return read(name)
    try:
        outside = import_module("imcc_paper.outside_sets")
    except ModuleNotFoundError:
        raise ValueError(f"there is no data set {name!r}: give a name of imcc or a file") from None
    return outside.load(name)


def reported_splits(data: Dataset) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return training and test rows of the reported splits; parts of them for large sets."""
    splits = paper_splits(data, len(SPLITS), seed=SEED)
    if data.n_rows <= MANY_ROWS:
        return splits
    return [
        (_some(train, MOST_TRAINING, k), _some(test, MOST_TEST, k))
        for k, (train, test) in enumerate(splits)
    ]


def tuning_rows(data: Dataset) -> np.ndarray:
    """Return the training rows of the split that is not reported, at most TUNING_ROWS."""
    train, _ = paper_splits(data, 1, seed=TUNING_SEED)[0]
    return _some(train, TUNING_ROWS, TUNING_SEED)


def _some(rows: np.ndarray, most: int, seed: int) -> np.ndarray:
    if len(rows) <= most:
        return rows
    return np.sort(np.random.RandomState(seed).permutation(rows)[:most])


def limited(function: Callable[[], Any], seconds: float) -> Any:
    """Return what a function returns that may use so many CPU seconds, in a process of its own."""
    handle, name = tempfile.mkstemp()
    os.close(handle)
    child = os.fork()
    if not child:
        code = 1
        try:
            limit = max(1, math.ceil(seconds))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
            Path(name).write_bytes(pickle.dumps(function()))
            code = 0
        except Exception:
            traceback.print_exc()
            Path(name).write_text(traceback.format_exc(limit=0).strip().splitlines()[-1])
        finally:
            os._exit(code)
    try:
        # A process that only waits uses no CPU time, and would never reach its limit.
        patience = time.monotonic() + _PATIENCE * seconds + 60
        while not (ended := os.waitpid(child, os.WNOHANG))[0] and time.monotonic() < patience:
            time.sleep(0.02)
        if not ended[0]:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise RuntimeError(f"no end after {_PATIENCE * seconds + 60:.0f} seconds")
        status = ended[1]
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU:
            raise OverLimitError(f"more than {seconds:.0f} CPU seconds")
        if os.WIFSIGNALED(status):
            raise RuntimeError(f"ended by {signal.Signals(os.WTERMSIG(status)).name}")
        if os.WEXITSTATUS(status):
            raise RuntimeError(Path(name).read_text() or f"exit code {os.WEXITSTATUS(status)}")
        return pickle.loads(Path(name).read_bytes())
    finally:
        Path(name).unlink()


class Task:
    """A method on a data set.

    Parameters
    ----------
    name, method : str
    cache : Path
        The folder of everything that is finished; what is there is not computed again.
    limits : Limits
    until : float
        No computation is begun after it (``time.time()``).
    """

    def __init__(
        self, name: str, method: str, cache: Path, limits: Limits, until: float = math.inf
    ) -> None:
        self.name, self.method, self.limits, self.until = name, method, limits, until
        self.cache = cache / Path(name).name
        self.folder = self.cache / method
        self.folder.mkdir(parents=True, exist_ok=True)
        self.data = load(name)
        self.X, self.on = as_rows(self.data.X), np.asarray(self.data.Y) > 0
        self.tuning = tuning_rows(self.data)
        self.splits = reported_splits(self.data)

    def run(self) -> None:
        """Compute what is missing, and write the rows."""
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of iterations that are limited, and rare labels
            try:
                if self.method == STACK:
                    self._stack()
                elif not self.row_file(SPLITS[-1]).exists():
                    self._single()
            except OverLimitError as error:
                self._give_up(OVER, str(error))
            except RuntimeError as error:
                self._give_up(FAILED, str(error))

    def _single(self) -> None:
        rival = RIVALS[self.method]
        if rival.needs:
            import_module(rival.needs)  # before the processes that are timed
        chosen = self._search()
        folds = list(KFold(3, shuffle=True, random_state=TUNING_SEED).split(self.tuning))
        for part in parts_of(self.method):
            file, number = self.folder / f"{part}.npz", int(part[-1])
            if file.exists():
                continue
            if part.startswith("oof"):
                train, test = (self.tuning[rows] for rows in folds[number])
                seed = TUNING_SEED + number
            else:
                train, test = self.splits[number]
                seed = split_seed(SEED, self.data.name, self.data.n_rows, number)
            fit = partial(self._fit, train, test, chosen["setting"], self._seed(seed))
            _write_arrays(file, self._limited(fit))
        self._judge(chosen, folds)

    def _judge(self, chosen: dict[str, Any], folds: list[tuple[np.ndarray, np.ndarray]]) -> None:
        """Write the rows of a method whose parts are all there."""
        oof_seconds = 0.0
        oof = np.empty((len(self.tuning), self.on.shape[1]))
        if self.method != ENSEMBLE:
            for fold, (_, outside) in enumerate(folds):
                with np.load(self.folder / f"oof_{fold}.npz") as kept:
                    oof[outside] = kept["scores"]
                    oof_seconds += float(kept["fit_seconds"] + kept["predict_seconds"])
        for split, (train, test) in enumerate(self.splits):
            with np.load(self.folder / f"split_{split}.npz") as kept:
                if self.method == ENSEMBLE:
                    thresholds = thresholds_of(self.on[train], kept["held_out"])
                else:
                    known = ~np.isin(self.tuning, test)
                    thresholds = thresholds_of(self.on[self.tuning[known]], oof[known])
                self._keep(
                    split,
                    judge(self.on[test], kept["scores"], thresholds),
                    settings=shown(chosen["setting"]),
                    n_settings=chosen["n_settings"],
                    tune_seconds=chosen["seconds"],
                    oof_seconds=oof_seconds,
                    fit_seconds=float(kept["fit_seconds"]),
                    predict_seconds=float(kept["predict_seconds"]),
                )

    def _fit(
        self, train: np.ndarray, test: np.ndarray, setting: Setting, seed: int
    ) -> dict[str, Any]:
        start = time.process_time()
        fitted = RIVALS[self.method].fit(self.X[train], self.on[train], setting, seed, None)
        middle = time.process_time()
        scores = np.asarray(fitted.scores(self.X[test]), dtype=float)
        found = {
            "scores": scores,
            "fit_seconds": middle - start,
            "predict_seconds": time.process_time() - middle,
        }
        return found if fitted.held_out is None else {**found, "held_out": fitted.held_out}

    def _seed(self, seed: int) -> int:
        """Return the seed of the paper's experiment for the ensemble, smaller ones for others."""
        return seed if self.method == ENSEMBLE else seed % 2**30

    def _limited(self, function: Callable[[], Any], seconds: float | None = None) -> Any:
        if time.time() >= self.until:
            raise NoTimeError
        return limited(function, self.limits.fit_cap if seconds is None else seconds)

    def _search(self) -> dict[str, Any]:
        """Return the best setting, how many were tried, and their CPU seconds."""
        rival, file = RIVALS[self.method], self.folder / "search.json"
        if file.exists():
            return json.loads(file.read_text())
        if not rival.choices:
            return {"setting": {}, "n_settings": 0, "seconds": 0.0}
        seed = split_seed(TUNING_SEED, f"{self.data.name}/{self.method}", self.data.n_rows, 0)
        order = np.random.RandomState(seed).permutation(self.tuning)
        n_held = int(HELD_OUT * len(order))
        train, held = np.sort(order[n_held:]), np.sort(order[:n_held])

        def attempt(setting: Setting) -> tuple[float, Setting, float]:
            start = time.process_time()
            fitted = rival.fit(
                self.X[train],
                self.on[train],
                setting,
                self._seed(seed),
                Held(self.X[held], self.on[held]),
            )
            value = loss(self.on[held], fitted.scores(self.X[held]))
            return value, {**setting, **fitted.found}, time.process_time() - start

        tried, spent, settings = [], 0.0, rival.settings(self.limits.settings, self.X, seed)
        for setting in settings:
            left = self.limits.cap - spent
            if left < 1:
                break
            try:
                tried.append(self._limited(lambda s=setting: attempt(s), left))
            except OverLimitError:
                spent = self.limits.cap
                break
            spent += tried[-1][2]
        best = min(tried, key=lambda one: one[0])[1] if tried else settings[0]
        chosen = {"setting": best, "n_settings": len(tried), "seconds": spent}
        _write(file, chosen)
        return chosen

    def _stack(self) -> None:
        members, missing, seconds = [], {}, dict.fromkeys(SECONDS, 0.0)
        for method in STACKED:
            rows = [row_of(self.cache, method, split) for split in SPLITS]
            if any(row is None for row in rows):
                raise RuntimeError(f"{method} is not finished on {self.name}")
            if rows[0]["status"] == DONE:
                members.append(method)
                for name in SECONDS:
                    seconds[name] += float(np.mean([row[name] for row in rows]))
            else:
                missing[method] = rows[0]["status"]
        if not members:
            raise OverLimitError("no member is finished")
        folds = list(KFold(3, shuffle=True, random_state=TUNING_SEED).split(self.tuning))
        oof = np.empty((len(members), len(self.tuning), self.on.shape[1]), dtype=np.float32)
        for k, method in enumerate(members):
            for fold, (_, outside) in enumerate(folds):
                with np.load(self.cache / method / f"oof_{fold}.npz") as kept:
                    oof[k, outside] = kept["scores"]
        for split in SPLITS:
            start = time.process_time()
            _, test = self.splits[split]
            known = ~np.isin(self.tuning, test)
            labels = self.on[self.tuning[known]]
            weights = stack_weights(oof[:, known], labels)
            of_test = []
            for method in members:
                with np.load(self.cache / method / f"split_{split}.npz") as kept:
                    of_test.append(kept["scores"])
            scores = np.tensordot(weights, np.array(of_test), 1)
            out_of_fold = np.tensordot(weights, oof[:, known].astype(float), 1)
            used = {**seconds, "fit_seconds": seconds["fit_seconds"] + time.process_time() - start}
            self._keep(
                split,
                judge(self.on[test], scores, thresholds_of(labels, out_of_fold)),
                settings={m: round(float(w), 3) for m, w in zip(members, weights, strict=True)},
                n_settings=0,
                remark="; ".join(f"{method}: {status}" for method, status in missing.items()),
                **used,
            )

    def _give_up(self, status: str, remark: str) -> None:
        """Write the rows of a method that could not be finished on this data set."""
        chosen: dict[str, Any] = {"setting": {}, "n_settings": 0, "seconds": math.nan}
        if (self.folder / "search.json").exists():
            chosen = json.loads((self.folder / "search.json").read_text())
        for split in SPLITS:
            if not self.row_file(split).exists():
                self._keep(
                    split,
                    {},
                    status=status,
                    remark=remark,
                    settings=shown(chosen["setting"]),
                    n_settings=chosen["n_settings"],
                    tune_seconds=chosen["seconds"],
                )

    def row_file(self, split: int) -> Path:
        """Return the file of a row."""
        return self.folder / f"row_{split}.json"

    def _keep(self, split: int, values: dict[str, float], **more: Any) -> None:
        train, test = self.splits[split]
        row = {
            **dict.fromkeys((*METRICS, *SECONDS), math.nan),
            "dataset": self.data.name,
            "method": self.method,
            "split": split,
            "status": DONE,
            "remark": "",
            **values,
            **more,
            "n_train": len(train),
            "n_test": len(test),
            "n_features": self.X.shape[1],
            "n_labels": self.on.shape[1],
            "cap": self.limits.cap,
            "fit_cap": self.limits.fit_cap,
            "environment": environment(self.method),
        }
        for name in SECONDS:
            row[name] = round(row[name], 3)
        for name in ("settings", "environment"):
            row[name] = json.dumps(row[name], sort_keys=True)
        _write(self.row_file(split), row)


def parts_of(method: str) -> tuple[str, ...]:
    """Return the fits of a method after the search; the ensemble needs no out-of-fold ones."""
    return tuple(p for p in PARTS if p.startswith("split")) if method == ENSEMBLE else PARTS


def _write(file: Path, content: dict[str, Any]) -> None:
    """Write a file as a whole, also where two processes do."""
    part = file.with_name(f"{file.stem}.{os.getpid()}.part")
    part.write_text(json.dumps(content))
    part.rename(file)


def _write_arrays(file: Path, content: dict[str, Any]) -> None:
    part = file.with_name(f"{file.stem}.{os.getpid()}.part.npz")
    np.savez(part, **content)
    part.rename(file)


def row_of(cache: Path, method: str, split: int) -> dict[str, Any] | None:
    """Return a row that is finished, from the folder of a data set."""
    file = cache / method / f"row_{split}.json"
    return json.loads(file.read_text()) if file.exists() else None


def thresholds_of(on: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return the thresholds of the labels with the highest F1."""
    return choose_thresholds(on.astype(int), scores).thresholds


def judge(on: np.ndarray, scores: np.ndarray, thresholds: np.ndarray) -> dict[str, float]:
    """Return the metrics of log-odds."""
    values = evaluate(on, scores, ("average_precision", "ranking_loss", "one_error"))
    return {
        **values,
        "macro_average_precision": macro_average_precision(on, scores),
        "log_loss": log_loss(on, expit(scores)),
        "macro_f1": macro_f1(on, scores >= 0),
        "macro_f1_tuned": macro_f1(on, scores >= thresholds),
    }


def shown(setting: Setting) -> Setting:
    """Return a setting with the median number of trees instead of one per label."""
    if isinstance(setting.get("steps"), list):
        return {**setting, "steps": int(np.median(setting["steps"]))}
    return setting


def environment(method: str) -> dict[str, str]:
    """Return the machine and the versions."""
    needs = RIVALS[method].needs if method in RIVALS else ""
    found = machine()
    for package in {"mlrl.boosting": ("mlrl-boomer",), "xgboost": ("xgboost", "xgboost-cpu")}.get(
        needs, (needs,) if needs else ()
    ):
        try:
            found[package] = version(package)
            break
        except PackageNotFoundError:
            continue
    return found
