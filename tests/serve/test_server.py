"""The command, and a real server in a process of its own: slow clients, those that leave, kills."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import uvicorn  # noqa: F401  # without it, these tests are skipped; under CI they fail
from click.testing import CliRunner

from imcc.cli._app import app


def slow_request(server, body, sent):
    """Begin a request whose body is longer than what is sent of it."""
    client = socket.create_connection(("127.0.0.1", server.port), timeout=30)
    head = (
        f"POST /predict HTTP/1.1\r\nHost: localhost:{server.port}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    client.sendall(head.encode() + body[:sent])
    return client


def test_slow_clients_and_those_that_leave_keep_nobody_waiting(serve_command, model_file, records):
    server = serve_command(model_file, "--max-seconds", 2)
    expected = server.ask(records[0])
    body = json.dumps(records).encode()
    slow = [slow_request(server, body, 10) for _ in range(50)]
    silent = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(50)]
    assert server.ask(records[0]) == expected  # if it waited for each of them, too late
    answer = slow[0].recv(1000)
    assert b" 408 " in answer
    for client in (*slow, *silent):
        client.close()
    gone = slow_request(server, body, len(body))  # does not wait for the answer
    gone.close()
    assert server.ask(records[0]) == expected
    assert server.stop() in (0, -signal.SIGTERM)
    assert not any("Traceback" in line for line in server.lines), server.lines


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="finds processes by /proc")
def test_a_killed_process_is_replaced(serve_command, model_file, records):
    server = serve_command(model_file, "--workers", 2)
    expected = server.ask(records)
    pid = server.process.pid
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    workers = [c for c in children if "spawn_main" in Path(f"/proc/{c}/cmdline").read_text()]
    assert len(workers) == 2
    for worker in workers:
        os.kill(int(worker), signal.SIGKILL)
    server.until_answered()
    assert server.ask(records) == expected


@pytest.mark.slow
def test_answers_of_several_processes_are_not_held_back(serve_command, model_file, records):
    server = serve_command(model_file, "--workers", 2)
    client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    seconds = []
    for _ in range(30):
        start = time.perf_counter()
        client.request("GET", "/health")
        client.getresponse().read()
        seconds.append(time.perf_counter() - start)
    client.close()
    assert min(seconds[10:]) < 0.03  # the time that Linux waits before it confirms: 0.04


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing.skops"], "nothing.skops"),
        (["MODEL", "MODEL"], "unexpected extra argument"),
        (["MODEL", "--port", "99999"], "--port"),
        (["MODEL", "--max-rows", "0"], "--max-rows"),
        (["MODEL", "--max-seconds", "0"], "--max-seconds"),
        (["FOLDER"], "folder"),
    ],
)
def test_what_the_command_refuses(model_file, tmp_path, arguments, words):
    names = {"MODEL": model_file, "FOLDER": tmp_path}
    done = CliRunner().invoke(app, ["serve", *(str(names.get(w, w)) for w in arguments)])
    assert done.exit_code != 0
    assert words in done.output
    assert "Traceback" not in done.output


THREADS = """
import json, sys
from starlette.testclient import TestClient
from threadpoolctl import threadpool_info
from imcc.serve import _app

def watched(*arguments):
    print(sorted({pool["num_threads"] for pool in threadpool_info()}))
    return before(*arguments)

before, _app.predictions = _app.predictions, watched
client = TestClient(_app.make_app(sys.argv[1]))
assert client.post("/predict", json=json.loads(sys.argv[2])).status_code == 200
"""


def test_one_thread_of_blas(model_file, records):
    """In the thread that predicts; in another process, because the tests hold the limits here."""
    done = subprocess.run(
        [sys.executable, "-c", THREADS, model_file, json.dumps(records[0])],
        capture_output=True,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"},
    )
    assert done.stdout == "[1]\n", done.stderr
