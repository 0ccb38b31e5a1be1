"""Every public function of the package is documented with an example."""

import imcc.datasets


def test_everything_public_is_documented_with_an_example():
    without = [
        name
        for name in imcc.datasets.__all__
        if callable(getattr(imcc.datasets, name))
        and not isinstance(getattr(imcc.datasets, name), type)
        and ">>>" not in (getattr(imcc.datasets, name).__doc__ or "")
    ]
    assert without == []
