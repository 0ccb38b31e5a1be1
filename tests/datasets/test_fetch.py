"""Downloads, from a real web server on this machine."""

import concurrent.futures
import errno
import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from imcc._utils.progress import progress_reported_to
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
    with progress_reported_to(lambda share, what: told.append((share, what))):
        fetch.get_file(file)
    shares = [share for share, _ in told]
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert "set/file.arff" in told[-1][1]


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
        ("corrupt", "does not match the known hash"),
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


def test_a_server_that_says_nothing(server, file, own_data_home, monkeypatch):
    server.manners["/public/set/file.arff"] = "delay"
    monkeypatch.setattr(fetch, "_TIMEOUT", 0.1)
    with pytest.raises(DataFetchError, match="timed out"):
        fetch.get_file(file)
    assert left_over(own_data_home) == []


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
def test_cached_files_are_readable_by_others(file):
    assert fetch.get_file(file).stat().st_mode & 0o777 == 0o644


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


def test_a_disk_that_is_full(file, own_data_home, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shutil, "move", full)
    with pytest.raises(DataFetchError, match="No space left") as caught:
        fetch.get_file(file)
    assert "IMCC_DATA_HOME" in str(caught.value)
    assert left_over(own_data_home) == []


def test_two_downloads_at_once(server, file, own_data_home):
    server.manners["/public/set/file.arff"] = "slow"
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        paths = list(pool.map(fetch.get_file, [file, file]))
    assert [path.read_bytes() for path in paths] == [DATA, DATA]
    assert left_over(own_data_home) == ["set/file.arff"]


FETCH = """
from imcc.datasets._fetch import get_file
from imcc.datasets._registry import RemoteFile
get_file(RemoteFile("set/file.arff", {url!r}, {sha!r}, {size}))
"""


def test_a_killed_download_leaves_nothing_that_counts(server, file, own_data_home):
    server.manners["/public/set/file.arff"] = "slow"
    code = FETCH.format(url=file.url, sha=file.sha256, size=file.size)
    process = subprocess.Popen([sys.executable, "-c", code])
    while not server.requests:
        time.sleep(0.02)
    time.sleep(0.1)
    process.kill()
    process.communicate(timeout=120)
    assert not (own_data_home / "set" / "file.arff").exists()
    server.manners.clear()
    assert fetch.get_file(file).read_bytes() == DATA


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
