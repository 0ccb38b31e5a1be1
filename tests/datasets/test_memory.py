"""Small files that ask for much memory: read or refused within 1 GiB.

tests/datasets/hostile_files.py does the same for as long as one likes.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from imcc.datasets import DataFormatError, read

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is measured as on Linux")
def test_files_under_a_megabyte_stay_under_a_gibibyte():
    command = [sys.executable, "-m", "tests.datasets.hostile_files", "--quick", "--seconds", "3"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\n0 failures" in done.stdout
    assert "svmlight labels declared" in done.stdout, "the built files were read"


def test_a_lack_of_memory_is_an_error_of_the_file(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n1,0\n")

    class Full(list):
        def __iter__(self):
            raise MemoryError("no room")

    with pytest.raises(DataFormatError, match=r"t\.csv: .*no room"):
        read(tmp_path / "t.csv", labels=Full(["y"]))


def test_max_bytes_allows_more(tmp_path):
    np.savez_compressed(tmp_path / "t.npz", X=np.zeros((4200, 4096), np.int8), Y=np.ones((4200, 1)))
    with pytest.raises(DataFormatError, match="max_bytes="):
        read(tmp_path / "t.npz")
    assert read(tmp_path / "t.npz", max_bytes=2**30).n_features == 4096
