import pytest

from imcc_paper import ablation


def test_each_stage_is_left_out_by_a_name_that_exists_and_by_nothing_else():
    for variant, patches in ablation.PATCHES.items():
        assert bool(patches) == (variant not in (ablation.WHOLE, ablation.TREES))
        for name, value in patches.items():
            with ablation.mock.patch(name, value):  # raises if there is no such name
                pass


def test_every_row_has_one_of_everything_beside_it():
    runs = {ablation.Run(*(row[k] for k in ablation.Run._fields)) for row in ablation.stored_rows()}
    assert len(runs) == len(ablation.stored_rows()) > 150
    assert {run._replace(without=ablation.WHOLE) for run in runs} <= runs


@pytest.mark.data
@pytest.mark.slow
def test_rows_of_a_data_set_are_computed_again():
    stored = {
        row["without"]: row
        for row in ablation.stored_rows()
        if (row["data"], row["split"]) == ("medical", 2000)
    }
    assert {run.without for run in ablation.runs_of("medical")} == set(stored)
    found = {}
    for without in (ablation.WHOLE, "coupled labels", "view raw"):
        (found[without],) = ablation.measure(ablation.Run("medical", 2000, without))
        for name in ("average_precision", "log_loss"):
            assert found[without][name] == pytest.approx(stored[without][name], abs=1e-6)
    assert len({row["log_loss"] for row in found.values()}) == 3
