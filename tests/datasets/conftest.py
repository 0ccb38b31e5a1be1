"""Files, a cache and a web server for the tests of imcc.datasets."""

from __future__ import annotations

import http.server
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import scipy.sparse as sp

from imcc.datasets import Dataset


@pytest.fixture
def own_data_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, which files can be downloaded to."""
    home = tmp_path / "data-home"
    monkeypatch.setenv("IMCC_DATA_HOME", str(home))
    return home


@pytest.fixture
def toy() -> Dataset:
    X = [[0.5, 0.0, -1.25], [0.0, 0.0, 3e-7], [1.0, 2.0, 0.0], [0.0, 7.0, 0.1]]
    Y = [[1, 0], [0, 0], [1, 1], [0, 1]]
    return Dataset(X, Y, ("a", "b c", "it's"), ("cat", "big dog"), "toy")


@pytest.fixture
def sparse_toy(toy: Dataset) -> Dataset:
    return Dataset(sp.csr_array(toy.X), toy.Y, toy.feature_names, toy.label_names, toy.name)


class Server:
    """A web server on this machine whose manners can be set for each path."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.manners: dict[str, str] = {}
        self.requests: list[str] = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.requests.append(self.path)
                outer.answer(self)

            def log_message(self, *_: object) -> None:
                """Keep the terminal quiet."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def answer(self, request: http.server.BaseHTTPRequestHandler) -> None:
        data = self.files.get(request.path)
        manner = self.manners.get(request.path, "serve")
        if data is None:
            request.send_error(404)
            return
        if manner == "delay":
            time.sleep(0.3)
        if manner == "corrupt":
            data = data[:-1] + bytes([data[-1] ^ 1])
        if manner == "endless":
            data = data + b"x" * 10_000
        request.send_response(200)
        request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        if manner == "cut":
            data = data[: len(data) // 2]
        if manner == "slow":
            for start in range(0, len(data), 1000):
                request.wfile.write(data[start : start + 1000])
                time.sleep(0.02)
            return
        try:
            request.wfile.write(data)
        except (BrokenPipeError, ConnectionResetError):
            self.requests.append("gone")  # the client had enough; that is what it should do
        if manner == "cut":
            request.connection.close()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.close()
