import functools
import json
import re
import socket
import subprocess
import sys
import time
from threading import Thread
from urllib.request import Request, urlopen

import numpy as np
import pytest

from imcc import IMCCClassifier, save_model
from imcc.estimators import MultilabelCalibrator
from imcc.serve import make_app
from imcc.tables import TableClassifier


def customers(n=120, seed=0):
    """A table with a column of each kind, and two labels."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "key": [f"K{i:03d}" for i in range(n)],
            "age": rng.integers(18, 90, n).astype(float),
            "plan": rng.choice(["basic", "plus"], n),
            "member": rng.choice(["yes", "no"], n),
            "since": rng.choice(["2021-05-31", "2022-01-02", "2023-07-09"], n),
            "note": [" ".join(rng.choice(["late", "loud", "great", "slow"], 4)) for _ in range(n)],
        }
    )
    labels = pd.DataFrame(
        {
            "senior": (frame["age"] > 60).astype(int),
            "<b>late</b>": frame["note"].str.contains("late").astype(int),
        }
    )
    return frame, labels


@pytest.fixture(scope="session")
def model_file(tmp_path_factory):
    """A model of a table, with probabilities; and a record for it."""
    frame, labels = customers()
    inner = MultilabelCalibrator(IMCCClassifier(n_clusters=4, random_state=0), cv=3)
    model = TableClassifier(inner, kinds={"note": "text", "since": "date"}, weights={})
    return save_model(model.fit(frame, labels), tmp_path_factory.mktemp("served") / "m.skops")


@pytest.fixture(scope="session")
def records():
    return customers(20, seed=1)[0].to_dict("records")


class Client:
    """What asks a server at a free port of this machine."""

    def get(self, path):
        with urlopen(self.url + path, timeout=60) as response:
            return response.read().decode()

    def ask(self, rows):
        headers = {"content-type": "application/json"}
        request = Request(self.url + "/predict", json.dumps(rows).encode(), headers)
        with urlopen(request, timeout=60) as response:
            return json.load(response)


class Process(Client):
    """A server in a process of its own, as ``imcc serve`` starts it."""

    def __init__(self, file, *options):
        arguments = [sys.executable, "-m", "imcc", "serve", file, "--port", "0", *options]
        self.process = subprocess.Popen(
            list(map(str, arguments)), stderr=subprocess.PIPE, text=True, errors="replace"
        )
        self.lines = []
        for line in self.process.stderr:
            self.lines.append(line)
            if found := re.search(r"running on (http://127\.0\.0\.1:(\d+))", line):
                self.url, self.port = found[1], int(found[2])
                break
        else:
            raise AssertionError("".join(self.lines))
        # What it says later must be read, or it would wait for that.
        self.reader = Thread(target=lambda: self.lines.extend(self.process.stderr))
        self.reader.start()
        self.until_answered()

    def until_answered(self, seconds=60):
        end = time.monotonic() + seconds
        while True:
            try:
                return self.get("/health")
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
        status = self.process.wait(30)
        self.reader.join(30)
        self.process.stderr.close()
        return status


class InThread(Client):
    """A server in a thread of the tests."""

    def __init__(self, file):
        import uvicorn

        listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        self.server = uvicorn.Server(uvicorn.Config(make_app(file), log_level="error"))
        self.thread = Thread(target=self.server.run, args=([listening],))
        self.thread.start()

    def stop(self):
        self.server.should_exit = True
        self.thread.join(30)


@pytest.fixture
def serve():
    """Start servers, by default in a thread, and stop them at the end of the test."""
    import click  # noqa: F401  # without them, the test is skipped; under CI it fails
    import uvicorn  # noqa: F401

    started = []

    def start(*arguments, kind=InThread):
        started.append(kind(*arguments))
        return started[-1]

    yield start
    for server in started:
        server.stop()


@pytest.fixture
def serve_command(serve):
    """Start servers in processes of their own."""
    return functools.partial(serve, kind=Process)
