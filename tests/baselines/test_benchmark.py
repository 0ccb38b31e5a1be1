"""The script behind the tables of the documentation."""

from benchmarks import baselines as script


def test_models_are_seeded_where_they_have_a_seed():
    for name, model in {**script.ALGORITHMS, **script.SPEED, **script.VARIANTS["lift"]}.items():
        seeded = script.seeded(model, 3).get_params()
        assert seeded.get("random_state", 3) == 3, name
        assert "cv" not in seeded or seeded["cv"].random_state == 3, name


def test_the_table_has_means_beside_the_papers_numbers(tmp_path):
    store = tmp_path / "rows.jsonl"
    assert script.stored_rows(store) == []
    store.write_text(
        '{"algorithm": "ECC", "data": "yeast", "repetition": 0, "average_precision": 0.70}\n'
        '{"algorithm": "ECC", "data": "yeast", "repetition": 1, "average_precision": 0.72}\n'
    )
    table = script.accuracy_table(script.stored_rows(store), ["yeast"])
    assert "| ECC | 0.710 ± 0.010 (0.756) |" in table
    assert "| extra-trees | not run |" in table


def test_the_papers_numbers_cover_its_algorithms():
    assert set(script.PAPER) < set(script.ALGORITHMS)
    assert all(len(row) == len(script.DATA) for row in script.PAPER.values())
