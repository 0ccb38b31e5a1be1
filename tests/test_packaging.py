"""What pyproject.toml says is what the package needs."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import imcc

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
# Where a module has another name than its distribution.
DISTRIBUTIONS = {"sklearn": "scikit-learn"}


def required(lines):
    return {re.match(r"[\w-]+", line)[0] for line in lines}


def top_imports(path):
    """The packages that a file imports at its top level."""
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module.partition(".")[0]


def test_every_import_is_declared():
    core = required(PROJECT["dependencies"])
    shell = core | required(PROJECT["optional-dependencies"]["cli"])
    package = Path(imcc.__file__).parent
    for path in package.rglob("*.py"):
        allowed = shell if path.parent.name == "cli" else core
        used = set(top_imports(path)) - set(sys.stdlib_module_names) - {"imcc"}
        assert {DISTRIBUTIONS.get(name, name) for name in used} <= allowed, path


def test_every_package_that_a_message_names_is_in_an_extra():
    """require("pyarrow", ...) says to install it: under a name that pip knows."""
    known = set().union(*map(required, PROJECT["optional-dependencies"].values()), {"markupsafe"})
    found = set()
    for path in Path(imcc.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not (isinstance(node, ast.Call) and getattr(node.func, "id", "") == "require"):
                continue
            if isinstance(module := getattr(node.args[0], "value", None), str):
                package = module.partition(".")[0]
                found.add(DISTRIBUTIONS.get(package, package.replace("_", "-")))
    assert found <= known
    assert len(found) > 10


def test_parquet_does_not_need_the_report():
    extras = PROJECT["optional-dependencies"]
    assert required(extras["parquet"]) == {"pyarrow"}
    assert "pyarrow" not in required(extras["report"])
    names = set(re.findall(r"[\w-]+", extras["all"][0])) - {"imcc"}
    assert names == set(extras) - {"all", "docs", "dev", "gpu-tests"}


def test_the_version_stands_in_one_place():
    assert "version" not in PROJECT
    assert PROJECT["dynamic"] == ["version"]
    files = [ROOT / "pyproject.toml", *Path(imcc.__file__).parent.rglob("*.py")]
    holders = [path for path in files if f'"{imcc.__version__}"' in path.read_text("utf-8")]
    assert [path.name for path in holders] == ["__init__.py"]


def test_without_click_the_command_says_what_to_install():
    code = "import sys; sys.modules['click'] = None; from imcc.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code, "--help"], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == (
        "imcc: the command line needs the package 'click': pip install click rich\n"
    )


def test_tests_that_need_what_is_not_installed_are_skipped_but_not_in_ci(tmp_path):
    shutil.copy(ROOT / "conftest.py", tmp_path)
    (tmp_path / "test_top.py").write_text("import not_installed\ndef test(): pass\n")
    (tmp_path / "test_inside.py").write_text(
        "import pytest\n"
        "@pytest.fixture\n"
        "def needs():\n    import not_installed\n"
        "def test_fixture(needs): pass\n"
        "def test_body():\n    import not_installed\n"
        "def test_require():\n    raise ImportError('x', name='not_installed')\n"
        "def test_ours():\n    raise ImportError('x', name='imcc.nothing')\n"
        "def test_other():\n    raise ValueError('x')\n"
        "def test_good(): pass\n"
    )
    assert outcomes(tmp_path, CI="false") == {"passed": 1, "failed": 2, "skipped": 4}
    assert outcomes(tmp_path, CI="true") == {"passed": 1, "failed": 4, "error": 2}


def test_only_tests_with_the_marker_see_the_data_files(tmp_path):
    """Others fail without it, whoever runs them; and where there are no files, none is run."""
    shutil.copy(ROOT / "conftest.py", tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = data: needs files\n")
    (tmp_path / "mirror").mkdir()
    (tmp_path / "home").mkdir()
    (tmp_path / "test_it.py").write_text(
        "import os, subprocess, sys\n"
        "from pathlib import Path\n"
        "import pytest\n"
        "READ = 'import os; print(os.environ.get(\"IMCC_DATA_MIRROR\"))'\n"
        "AT_THE_TOP = os.environ.get('IMCC_DATA_MIRROR')\n"
        "def seen():\n"
        "    done = subprocess.run([sys.executable, '-c', READ], capture_output=True, text=True)\n"
        "    return done.stdout.strip()\n"
        "@pytest.mark.data\n"
        "def test_marked(): assert seen().endswith('mirror')\n"
        "def test_not_marked(): assert (seen(), AT_THE_TOP) == ('None', None)\n"
        "def test_the_cache():\n"
        "    home = Path(os.environ['IMCC_DATA_HOME'])\n"
        "    assert not home.exists()\n"
        "    with pytest.raises(OSError): home.mkdir(parents=True)\n"
    )
    there = {"IMCC_DATA_MIRROR": str(tmp_path / "mirror"), "IMCC_DATA_HOME": str(tmp_path / "home")}
    assert outcomes(tmp_path, CI="false", **there) == {"passed": 3}
    assert outcomes(tmp_path, CI="true", IMCC_DATA_MIRROR="nowhere") == {"passed": 2, "error": 1}
    skipped = {"passed": 2, "skipped": 1}
    assert outcomes(tmp_path, "--without-data", CI="true", **there) == skipped


def outcomes(folder, *options, **environment):
    """How many tests of a folder pass, fail and are skipped."""
    options = ("-p", "no:cacheprovider", "--continue-on-collection-errors", *options)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=folder,
        env={
            **os.environ,
            "IMCC_DATA_MIRROR": "",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            **environment,
        },
        capture_output=True,
        text=True,
    )
    last = done.stdout.splitlines()[-1]
    return {word: int(n) for n, word in re.findall(r"(\d+) (passed|failed|skipped|error)", last)}
