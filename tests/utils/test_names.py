import importlib

import pytest
from sklearn.base import BaseEstimator

import imcc
import imcc.baselines
import imcc.estimators
from imcc._utils.names import CLASSES, PARTS, class_of, name_of


@pytest.mark.parametrize("name", CLASSES)
def test_every_name_leads_to_its_class_and_back(name):
    assert name_of(class_of(name)) == name


def test_the_names_of_parts_lead_to_classes():
    for where in PARTS.values():
        module, _, name = where.partition(":")
        assert isinstance(getattr(importlib.import_module(module), name), type)
    assert not set(CLASSES) & set(PARTS)


@pytest.mark.parametrize(
    "package", [imcc, imcc.baselines, imcc.estimators], ids=lambda m: m.__name__
)
def test_every_public_estimator_has_a_name(package):
    classes = [getattr(package, name) for name in package.__all__]
    ours = [kind for kind in classes if isinstance(kind, type) and issubclass(kind, BaseEstimator)]
    assert ours
    assert all(name_of(kind) is not None for kind in ours)


def test_other_classes_have_none():
    assert name_of(BaseEstimator) is None
