"""Downloads, from a real web server on this machine."""

import hashlib
import os
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from imcc.datasets import DataFetchError, data_home
from imcc.datasets import _fetch as fetch
from imcc.datasets._registry import RemoteFile

DATA = b"some data\n" * 5000


@pytest.fixture
def file(server, own_data_home):
    server.files["/public/set/file.arff"] = DATA
    server.files["/mirror/set/file.arff"] = DATA
    digest = hashlib.sha256(DATA).hexdigest()
    return RemoteFile("set/file.arff", server.url + "/public/set/file.arff", digest, len(DATA))


def left_over(home: Path) -> list[str]:
    return [str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()]


def test_download_into_the_cache(server, file, own_data_home):
    path = fetch.get_file(file)
    assert path == own_data_home / "set" / "file.arff"
    assert path.read_bytes() == DATA
    assert left_over(own_data_home) == ["set/file.arff"]
    fetch.get_file(file)
    assert server.requests == ["/public/set/file.arff"], "the second time it is there"


def test_progress_is_reported(file):
    told = []
    fetch.get_file(file, progress=lambda *facts: told.append(facts))
    assert told[-1] == ("set/file.arff", len(DATA), len(DATA))
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)
    told.clear()
    fetch.get_file(file, progress=lambda *facts: told.append(facts))
    assert told == [("set/file.arff", len(DATA), len(DATA))]


def test_mirror_folders(server, file, tmp_path, monkeypatch):
    place = tmp_path / "mirror" / "set" / "file.arff"
    monkeypatch.setenv("IMCC_DATA_MIRROR", str(tmp_path / "mirror"))
    with pytest.raises(DataFetchError, match="IMCC_DATA_MIRROR"):
        fetch.get_file(file)
    place.parent.mkdir(parents=True)
    place.write_bytes(DATA)
    assert fetch.get_file(file) == place
    assert server.requests == []
    place.write_bytes(b"other data")
    with pytest.raises(DataFetchError, match=file.sha256):
        fetch.get_file(file)
    place.unlink()
    assert fetch.get_file(file).is_file(), "a folder without the file is passed over"
    assert server.requests == ["/public/set/file.arff"]


@pytest.mark.parametrize(
    ("cached", "mirror", "requests"),
    [
        (False, "/mirror/", ["/mirror/set/file.arff"]),
        (True, "/mirror", []),
        (False, "/elsewhere", ["/elsewhere/set/file.arff", "/public/set/file.arff"]),
    ],
)
def test_mirror_addresses(server, file, monkeypatch, cached, mirror, requests):
    """They come after the cache and before the public address."""
    if cached:
        fetch.get_file(file)
        server.requests.clear()
    monkeypatch.setenv("IMCC_DATA_MIRROR", server.url + mirror)
    assert fetch.get_file(file).read_bytes() == DATA
    assert server.requests == requests


@pytest.mark.parametrize(
    ("manner", "reason"),
    [
        ("cut", "IncompleteRead|Connection broken"),
        ("corrupt", "the server sent another file, not 50,000 bytes with the SHA-256"),
        ("endless", "the server sends more than the 50,000 bytes"),
    ],
)
def test_bad_servers(server, file, own_data_home, manner, reason):
    server.manners["/public/set/file.arff"] = manner
    with pytest.raises(DataFetchError, match=reason) as caught:
        fetch.get_file(file)
    message = str(caught.value)
    assert "could not obtain the file set/file.arff (50,000 bytes)" in message
    assert file.url in message
    assert f"as {own_data_home / 'set' / 'file.arff'}" in message
    assert file.sha256 in message
    assert left_over(own_data_home) == []
    server.manners.clear()
    assert fetch.get_file(file).read_bytes() == DATA, "and the next time it works"


def test_a_server_that_says_nothing(server, file, own_data_home):
    server.manners["/public/set/file.arff"] = "delay"
    with pytest.raises(DataFetchError, match="timed out"):
        fetch.get_file(file, timeout=0.2)
    assert left_over(own_data_home) == []
    assert fetch.get_file(file, timeout=5).read_bytes() == DATA, "it waits as long as it may"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no umask")
@pytest.mark.parametrize(("mask", "mode"), [(0o027, 0o640), (0o002, 0o664), (0o077, 0o600)])
def test_cached_files_are_readable_as_the_umask_says(file, mask, mode):
    before = os.umask(mask)
    try:
        path = fetch.get_file(file)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == mode


def test_what_was_left_long_ago_is_removed(file, own_data_home):
    folder = own_data_home / "set"
    old, new = folder / ".old.part", folder / ".new.part"
    for part in (old, new):
        part.mkdir(parents=True)
        (part / "file").write_bytes(b"half")
    os.utime(old, (1, 1))
    fetch.get_file(file)
    assert sorted(path.name for path in folder.iterdir()) == [new.name, "file.arff"]


def test_no_such_file_and_no_server(server, file, own_data_home):
    server.files.clear()
    with pytest.raises(DataFetchError, match="404"):
        fetch.get_file(file)
    nobody = RemoteFile(file.file, "http://127.0.0.1:9/file.arff", file.sha256, file.size)
    with pytest.raises(DataFetchError, match=r"Connection refused|Max retries"):
        fetch.get_file(nobody)
    assert left_over(own_data_home) == []


def test_a_broken_file_in_the_cache_is_replaced(server, file, own_data_home):
    path = fetch.get_file(file)
    path.write_bytes(DATA[:100])
    assert fetch.get_file(file).read_bytes() == DATA
    path.write_bytes(DATA[:100])
    server.files.clear()
    with pytest.raises(DataFetchError):
        fetch.get_file(file)
    assert left_over(own_data_home) == [], "a broken file is never left in the cache"


def test_no_room_on_the_disk(file, own_data_home, monkeypatch):
    class Full:
        free = 10

    monkeypatch.setattr(shutil, "disk_usage", lambda _: Full)
    with pytest.raises(DataFetchError, match=r"disk space .*set/file.arff.*IMCC_DATA_HOME"):
        fetch.get_file(file)
    assert left_over(own_data_home) == []


FETCH = """
import sys
from imcc.datasets import DataFetchError
from imcc.datasets._fetch import get_file
from imcc.datasets._registry import RemoteFile
file = RemoteFile("set/file.arff", {url!r}, {sha!r}, {size})
{before}
try:
    print(get_file(file).read_bytes().count(b"data"))
except DataFetchError as error:
    sys.exit(str(error))
"""


def start(file: RemoteFile, before: str = "") -> subprocess.Popen:
    code = FETCH.format(
        url=file.url, sha=file.sha256, size=file.size, before=textwrap.dedent(before)
    )
    return subprocess.Popen(
        [sys.executable, "-c", code], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def test_two_processes_at_once(server, file, own_data_home):
    server.manners["/public/set/file.arff"] = "slow"
    processes = [start(file) for _ in range(2)]
    answers = [process.communicate(timeout=120) for process in processes]
    assert [out.strip() for out, _ in answers] == ["5000", "5000"], answers
    assert left_over(own_data_home) == ["set/file.arff"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limits")
def test_a_disk_that_fills_up_while_writing(file, own_data_home):
    process = start(
        file,
        """
        import resource
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
        """,
    )
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "there is not enough disk space for the file set/file.arff" in errors
    assert left_over(own_data_home) == []


def test_a_killed_download_leaves_nothing_that_counts(server, file, own_data_home):
    server.manners["/public/set/file.arff"] = "slow"
    process = start(file)
    while not server.requests:
        time.sleep(0.02)
    time.sleep(0.1)
    process.kill()
    process.communicate(timeout=120)
    assert not (own_data_home / "set" / "file.arff").exists()
    server.manners.clear()
    assert fetch.get_file(file).read_bytes() == DATA


def test_a_file_that_another_process_holds_will_do_if_it_is_right(file, own_data_home, monkeypatch):
    """As Windows has it: a file that is being read cannot be replaced."""
    contents = [DATA, b"broken"]

    def refuse(_, target):
        Path(target).write_bytes(contents.pop(0))  # what the other process has put there
        raise PermissionError("in use")

    monkeypatch.setattr(os, "replace", refuse)
    target = fetch.get_file(file)
    assert target.read_bytes() == DATA
    target.unlink()
    with pytest.raises(DataFetchError, match="in use"):
        fetch.get_file(file)
    assert not contents


def test_without_pooch_the_message_says_what_to_install(file, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r"Downloading data sets needs .*pip install pooch$"):
        fetch.get_file(file)


def test_data_home(monkeypatch, tmp_path):
    assert data_home() == Path(os.environ["IMCC_DATA_HOME"])
    monkeypatch.delenv("IMCC_DATA_HOME")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert data_home() == tmp_path / "imcc"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_home() == tmp_path / ".cache" / "imcc"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert data_home() == tmp_path / "Library" / "Caches" / "imcc"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert data_home() == tmp_path / "local" / "imcc" / "Cache"
