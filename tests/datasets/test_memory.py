"""Small files that ask for much memory, some of tests/datasets/hostile_files.py."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from imcc.datasets import DataFormatError, read

ROOT = Path(__file__).parents[2]

# At least one for each check, of those that are built and read within a second.
QUICK = [
    "gz of zeros", "svmlight labels declared", "svmlight features used",
    "svmlight labels and rows", "csv with a long name", "arff of labels and short rows",
    "arff of missing words", "arff of yes and no", "npz of bytes", "npz of labels", "npz of names",
    "npz of sparse rows", "npz with a false header", "npz with a false size",
    "mat of zeros", "parquet of rows",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is measured as on Linux")
def test_files_under_a_megabyte_stay_under_a_gibibyte():
    command = [sys.executable, "-m", "tests.datasets.hostile_files", *QUICK]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(done.stdout.splitlines()) == len(QUICK) + 1


def test_max_bytes_allows_more(tmp_path):
    np.savez_compressed(tmp_path / "t.npz", X=np.zeros((4200, 4096), np.int8), Y=np.ones((4200, 1)))
    with pytest.raises(DataFormatError, match="max_bytes="):
        read(tmp_path / "t.npz")
    assert read(tmp_path / "t.npz", max_bytes=2**30).n_features == 4096
