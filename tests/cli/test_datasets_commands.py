import json
import re

import numpy as np
import pytest

from imcc.datasets import Dataset, load_dataset, read
from tests.cli.conftest import flat, invoke
from tests.writers import write


@pytest.fixture
def toy():
    return Dataset(
        [[0.5, 0], [1, 2], [3, 4]], [[1, 0], [1, 1], [0, 1]], ("a", "b"), ("p", "q"), "toy"
    )


def good(*arguments, code=0):
    return invoke("datasets", *arguments, code=code)


def said(*arguments, code):
    """What a command that fails says."""
    result = good(*arguments, code=code)
    assert result.stdout == ""
    return flat(result.stderr)


def test_list():
    output = good("list").stdout
    assert re.search(r"scene +regular +2407 +294 +6 +numeric +6\.2 MB +to fetch", output)
    assert re.search(r"yeast .* yes", output)


def test_list_json():
    found = {entry["name"]: entry for entry in json.loads(good("list", "--json").stdout)}
    assert found["yeast"]["available"] is True
    assert found["cal500"]["n_labels"] == 174


def test_describe_a_name():
    output = good("describe", "yeast").stdout
    assert re.search(r"distinct label sets +198 \(0\.082 per row\)", output)
    assert re.search(r"Class12 +1816 +0\.751", output)


def test_describe_a_file_is_the_same_command(tmp_path):
    write(load_dataset("yeast"), tmp_path / "my.arff")
    (tmp_path / "my.xml").rename(tmp_path / "labels.xml")
    named = json.loads(good("describe", "yeast", "--json").stdout)
    options = ("describe", tmp_path / "my.arff", "--labels", tmp_path / "labels.xml", "--json")
    found = json.loads(good(*options).stdout)
    for facts in (named, found):
        del facts["name"], facts["source"]
    assert found == named


CSV = "a,c,is_p,is_q\n1,red,1,0\n2,green,0,1\n3,blue,1,1\n4,red,0,0\n"


@pytest.mark.parametrize(
    ("labels", "found"),
    [("is_q,is_p", ["is_q", "is_p"]), ("is_*", ["is_p", "is_q"]), ("-1", ["is_q"])],
)
def test_labels(tmp_path, labels, found):
    (tmp_path / "t.csv").write_text(CSV)
    shown = json.loads(good("describe", tmp_path / "t.csv", f"--labels={labels}", "--json").stdout)
    assert list(shown["label_counts"]) == found
    assert shown["n_features"] == 4 - len(found)
    written = ("convert", tmp_path / "t.csv", tmp_path / "t.npz", f"--labels={labels}")
    good(*written)
    assert list(read(tmp_path / "t.npz").label_names) == found


def test_a_schema_file_is_written_edited_and_read(tmp_path):
    table, schema = tmp_path / "t.csv", tmp_path / "t.toml"
    table.write_text(CSV)
    good("describe", table, "--labels", "is_*", "--schema-to", schema)
    assert '"c" = "category"' in schema.read_text()
    assert "--force" in said("describe", table, "--schema-to", schema, code=1)
    schema.write_text(schema.read_text().replace('"c" = "category"', '"c" = "drop"'))
    found = json.loads(good("describe", table, "--schema", schema, "--json").stdout)
    assert [column["name"] for column in found["schema"]["columns"]] == ["a", "is_p", "is_q"]
    assert list(found["label_counts"]) == ["is_p", "is_q"]
    again = ("describe", table, "--schema", schema, "--schema-to", schema, "--force")
    good(*again)
    assert '"c" = "drop"' in schema.read_text()
    schema.write_text('[columns]\na = "colour"\n')
    assert "must be one of number" in said("describe", table, "--schema", schema, code=1)
    assert "--schema-to" in said("describe", "yeast", "--schema-to", schema, code=2)


def test_reading_options_of_convert(tmp_path):
    def n_rows_and_features(name, *settings, labels=None):
        out = tmp_path / "out.npz"
        options = [word for setting in settings for word in ("--read", setting)]
        options += [] if labels is None else [f"--labels={labels}"]
        good("convert", tmp_path / name, out, "--force", *options)
        return read(out).X.shape

    (tmp_path / "t.txt").write_text(CSV.replace(",", ";"))
    assert n_rows_and_features("t.txt", "format=csv", "delimiter=;", labels="is_*") == (4, 4)
    arff = "@relation 'x: -C 1'\n@attribute y {0,1}\n@attribute c {u,v,w}\n@data\n1,w\n"
    (tmp_path / "n.arff").write_text(arff)
    assert n_rows_and_features("n.arff") == (1, 3)
    assert n_rows_and_features("n.arff", "nominal=ordinal") == (1, 1)
    (tmp_path / "bare.csv").write_text("1,0\n2,1\n")
    assert n_rows_and_features("bare.csv", "header=false", labels=-1) == (2, 1)
    np.savez(tmp_path / "v.npz", u=np.ones((2, 3)), v=np.eye(2))
    twice = ("variables=u,v", "variables=u,v", "transpose_labels=false")
    assert n_rows_and_features("v.npz", *twice) == (4, 3)
    (tmp_path / "s.svm").write_text("1 1:1\n")
    assert n_rows_and_features("s.svm", "n_features=9", "index_base=zero") == (1, 9)
    assert n_rows_and_features("s.svm", "index_base=zero") == (1, 2)
    (tmp_path / "l.csv").write_bytes("größe,y\n1,0\n".encode("latin-1"))
    assert n_rows_and_features("l.csv", "encoding=latin-1", labels="y") == (1, 1)
    (tmp_path / "l.toml").write_text('encoding = "latin-1"\n[columns]\ny = "label"\n')
    start = ("convert", tmp_path / "l.csv", tmp_path / "l.npz", "--schema", tmp_path / "l.toml")
    assert "1 row" in good(*start).stdout


def test_packed_files(tmp_path, toy):
    import zipfile

    with zipfile.ZipFile(tmp_path / "two.zip", "w") as archive:
        archive.writestr("a.csv", "x,y\n1,0\n")
        archive.writestr("b.csv", "x,y\n1,0\n2,1\n")
    start = ("convert", tmp_path / "two.zip", tmp_path / "out.npz", "--labels", "y")
    assert "--read member" in said(*start, code=1)
    assert "2 rows" in good(*start, "--read", "member=b.csv").stdout
    write(toy, tmp_path / "t.arff.gz")
    small = ("convert", tmp_path / "t.arff.gz", tmp_path / "t.npz", "--read", "max_bytes=10")
    assert "the limit of 10 bytes" in said(*small, code=1)
    write(toy, tmp_path / "t.csv.gz")
    assert "3 rows" in good("describe", tmp_path / "t.csv.gz", "--labels", "p,q").stdout


def test_problems_have_exit_codes_and_no_tracebacks(tmp_path):
    (tmp_path / "bad.arff").write_text("@relation r\n@attribute x numeric\n@data\n1\n1,2\n")
    (tmp_path / "bare.arff").write_text("@relation r\n@attribute x numeric\n@data\n1\n")
    (tmp_path / "l.csv").write_bytes("größe,y\n1,0\n".encode("latin-1"))
    cases = [
        (["describe", tmp_path / "bad.arff", "--labels", "x"], 1, "bad.arff, line 5: the row has"),
        (["describe", tmp_path / "none.arff"], 1, "there is no file"),
        (["describe", tmp_path / "bare.arff"], 1, "pass one with --labels FILE.xml"),
        (["describe", tmp_path / "l.csv"], 1, 'encoding = "latin-1" in the file of --schema'),
        (["describe", "sceen"], 2, "did you mean scene?"),
        (["describe", "yeast", "--labels", "3"], 2, "--labels is for files"),
        (["describe", "yeast", "--drop", "x"], 2, "--drop is for tables"),
        (["describe", "yeast", "--force"], 2, "--schema-to"),
        (["convert", tmp_path / "bad.arff", "x.npz", "--read", "variables=a,b"], 2, "variables"),
        (["convert", tmp_path / "bad.arff", "x.npz", "--read", "format=x"], 2, "--read format"),
        (["convert", tmp_path / "bad.arff", "x.npz", "--read", "format"], 2, "name and a value"),
        (["convert", tmp_path / "bad.arff", "x.npz", "--read", "path=a"], 2, "--read path"),
        (["convert", tmp_path / "bad.arff", "x.npz", "--read", "max_bytes=a"], 2, "max_bytes"),
        (["convert", "-", "x.npz", "--read", "format=x"], 2, "--read format"),
        (["convert", "yeast"], 2, "Missing argument"),
    ]
    for arguments, code, message in cases:
        assert message in said(*arguments, code=code), arguments


def test_convert(tmp_path, toy):
    write(toy[:2], tmp_path / "a.arff")
    write(toy[2:], tmp_path / "b.arff")
    target = tmp_path / "all.csv"
    start = ("convert", tmp_path / "a.arff", tmp_path / "b.arff", target)
    assert "written to" in good(*start).stdout
    assert read(target, labels=["p", "q"]) == toy
    assert "--force" in said(*start, code=1)
    assert "3 rows, 2 features" in good(*start, "--force").stdout


def test_the_example_table(imcc, tmp_path):
    pytest.importorskip("pandas")
    file = tmp_path / "customers.csv"
    said = imcc("datasets", "example", file).stdout
    assert "800 rows written" in said
    assert "complaint, refund" in said
    text = file.read_text("utf-8")
    assert text.startswith("ticket,age,income,visits,distance,hours,score,region,plan,message")
    assert "already exists" in imcc("datasets", "example", file, code=1).stderr
    again = imcc("datasets", "example", file, "--force").stdout
    assert again.endswith("complaint, refund, upgrade, senior, remote, praise\n")
    assert file.read_text("utf-8") == text
    imcc("datasets", "example", file, "--force", "--seed", 1, "--rows", 30)
    assert len(file.read_text("utf-8").splitlines()) == 31
    assert ".csv file is written" in imcc("datasets", "example", "x.xlsx", code=2).stderr
