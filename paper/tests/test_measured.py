"""Measured numbers on pages are those of the files in results/."""

import re

import pytest

from imcc_paper import _measured, approximation, classifier, reproduce
from imcc_paper._measured import Measurements
from imcc_paper.places import DOCS, RESULTS

BLOCK = re.compile(r"<!-- make reproduce: ([\w-]+) -->(\n?)(.*?)\n?<!-- end -->", re.S)
# Numbers that look measured: of seconds, of bytes, shares, speed-ups, average precisions.
LOOKS_MEASURED = re.compile(
    r"\b\d[\d,.]* ?(?:s|ms|h|hours?|minutes?|seconds?|[KMGT]i?B|[GT]Flop/s|%|times)(?![\w/])"
    r"|(?<![\w.])0?\.\d{2,}"
)
# Other numbers, by page: chosen, computed or published, or checked elsewhere.
ALLOWED = {
    "performance": set(),
    "scale": {"0.005"},  # the height of the band in the figure
    "gpu": set(),
    "looking_into_a_model": {"5 %", "5 MB"},  # the rate of flips, and the limit of a page
    "saving_and_serving": {"1 MiB", "10 seconds"},  # limits
    "baselines": {
        "67 %",  # the rows of a chain, a parameter
        *("0.001", "0.01"),  # values of C
        *("1 %", "75 %"),  # frequencies of labels in yeast
        *("14.1 MiB", "122 MiB", "267 MiB", "1 GiB"),  # n x d and n x n numbers
        "14.5 minutes",  # test_baselines.py, with the table that follows
        *(".874", ".42", ".18", ".877"),  # tests/baselines/test_real_data.py
    },
}
# The pages whose numbers are measured.
MEASURED_PAGES = [
    DOCS / f"{name}.md"
    for name in (
        *("performance", "scale", "gpu", "looking_into_a_model", "baselines"),
        "saving_and_serving",
    )
]
# Written from rows.
FROM_ROWS = {"baselines", "imcc-ridge", "one-repetition"}


def text(path):
    return path.read_text("utf-8")


def test_blocks_are_what_the_files_give():
    blocks = reproduce.measured_blocks()
    used = set()
    for path in reproduce.MARKED:
        for name, _, shown in BLOCK.findall(text(path)):
            if name in blocks:
                assert shown == blocks[name], f"{name} in {path.name}: run make -C paper"
                used.add(name)
            else:
                assert path not in MEASURED_PAGES or name in FROM_ROWS, name
    assert used == set(blocks)
    assert _measured.digest(approximation.ROWS) in text(approximation.FIGURE), "run make -C paper"


@pytest.mark.parametrize("path", MEASURED_PAGES, ids=lambda path: path.stem)
def test_measured_numbers_are_only_in_blocks(path):
    prose = re.sub(r"```.*?```", "", BLOCK.sub("", text(path)), flags=re.S)
    prose = " ".join(re.sub(r"`[^`]*`", "", prose).split())
    # Also none that is allowed but not there.
    assert set(LOOKS_MEASURED.findall(prose)) == ALLOWED[path.stem]


def test_a_number_inside_of_a_line_does_not_begin_it():
    """Markdown takes a line that begins with a comment for HTML, up to its end."""
    for path in reproduce.MARKED:
        for match in BLOCK.finditer(text(path)):
            line = text(path)[: match.start()].rpartition("\n")[2]
            assert bool(line.strip(" *")) != bool(match[2]), (path.name, match[1])


def test_a_changed_number_is_noticed():
    page = text(MEASURED_PAGES[0])
    blocks = reproduce.measured_blocks()
    changed = re.sub(r"\d+ times faster", "9999 times faster", page)
    assert changed != page
    assert reproduce.filled(changed, blocks, "page") == page


class TestMeasurements:
    def test_a_part_is_replaced_and_others_are_kept(self, tmp_path, capsys):
        file = tmp_path / "rows.csv"
        first = Measurements()
        first.add("files", "linear 100", fit_seconds=1 / 3, rows=10_000_000)
        first.add("files", "linear 200", fit_seconds=2)
        first.add("other", "linear 100", seconds=0.5)
        first.save(file)
        assert "files, linear 100: fit_seconds 0.3333" in capsys.readouterr().err
        again = Measurements(device="a GPU")
        again.add("files", "linear 300", fit_seconds=3)
        again.save(file)
        found = Measurements.read(file)
        assert found.parts() == ["files", "other"]
        assert found.cases("files") == ["linear 300"]
        assert found.of("files", "linear 300") == {"fit_seconds": 3}
        assert found.of("other", "linear 100") == {"seconds": 0.5}
        assert (found.where("files", "device"), found.cases("none")) == ("a GPU", [])
        with pytest.raises(KeyError, match="'files' has no case 'linear 100', only"):
            found.of("files", "linear 100")
        with pytest.raises(ValueError, match="do not have one device"):
            found.where("other", "device")

    def test_numbers_come_back(self, tmp_path):
        first = Measurements()
        first.add("a", 1, third=1 / 3, many=10_000_000, small=1e-9)
        first.save(tmp_path / "rows.csv")
        found = Measurements.read(tmp_path / "rows.csv").of("a", "1")
        assert found == {"third": 0.333333, "many": 10_000_000, "small": 1e-9}

    @pytest.mark.parametrize("name", reproduce.MEASURED)
    def test_committed_files_have_the_columns_and_numbers(self, name):
        path = RESULTS / f"{name}.csv"
        assert f"`{name}.csv`" in text(RESULTS / "README.md")
        assert text(path).splitlines()[0] == ",".join(_measured.COLUMNS)
        found = Measurements.read(path)
        assert all(
            value >= 0
            for part in found.parts()
            for case in found.cases(part)
            for value in found.of(part, case).values()
        )
        # Written by the script, not entered by hand.
        for part in found.parts():
            assert found.where(part, "date")


def test_the_speed_is_measured_and_written(tmp_path, monkeypatch, capsys):
    """The whole script, on few rows and settings."""
    full = classifier.IMCCClassifierCV

    def small(grid="default", **parameters):
        return full(n_clusters=(2, 3), alphas=(1.0,), betas=(1.0,), gammas=(0.1, 1.0), **parameters)

    monkeypatch.setattr(classifier, "IMCCClassifierCV", small)
    monkeypatch.setattr(classifier, "N_CLUSTERS", 3)
    monkeypatch.setattr(classifier, "GROWTH", (30, 40, 999))
    monkeypatch.setattr(classifier, "ROUNDS", 1)
    monkeypatch.setattr(classifier, "in_own_process", lambda call, rows: 2.5)
    options = ["--rows", "40", "--sample", "2", "--threads", "1", "--csv", str(tmp_path / "a.csv")]
    monkeypatch.setattr("sys.argv", ["classifier", *options])
    classifier.main()
    found = Measurements.read(tmp_path / "a.csv")
    assert found.of("data", "made-up data") == {"rows": 40, "features": 462, "labels": 26}
    assert found.of("search", "paper")["sample"] == 2
    assert found.cases("growth") == ["30", "40"]
    assert found.where("search", "threads") == "1"
    blocks = classifier.blocks(found)
    assert f"{blocks['speed']}\n\n{blocks['growth']}\n" == capsys.readouterr().out
