import pytest

from imcc._utils.optional import require


def test_what_is_missing_is_named():
    with pytest.raises(
        ImportError, match=r"Drawing needs .*pip install no-such-package$"
    ) as caught:
        require("no_such_package.part", "Drawing")
    assert caught.value.name == "no_such_package"
