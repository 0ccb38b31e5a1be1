import pytest

from imcc._utils.optional import require


@pytest.mark.parametrize(
    ("extra", "remedy"),
    [("report", "pip install 'imcc\\[report\\]'"), (None, "pip install no-such-package-of-ours$")],
)
def test_what_is_missing_is_named(extra, remedy):
    with pytest.raises(ImportError, match=f"Drawing needs the package.*{remedy}") as caught:
        require("no_such_package_of_ours.part", extra, "Drawing")
    assert caught.value.name == "no_such_package_of_ours"
