"""The array libraries that tests run through, as on a machine with a GPU but without one."""

import importlib
import os
from contextlib import contextmanager

import numpy as np
import pytest

BACKENDS = ["torch", "array_api_strict"]


def backend(name):
    """Return a library, or skip the test; under CI=true a missing one is a failure."""
    try:
        importlib.import_module("array_api_compat")
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        reason = f"{error.name} is not installed: pip install '.[gpu,gpu-tests,dev]'"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)


def array(name, values):
    """Return values as an array of a library."""
    return backend(name).asarray(np.array(values))


def host(name, values):
    """Return an array that must be one of a library as NumPy's."""
    assert type(values).__module__.split(".")[0] == name
    return values.numpy() if name == "torch" else np.from_dlpack(values)


class KernelThatFills:
    """A linear kernel for which a device has no memory left, once ``is_full`` is set."""

    is_full = False

    def __call__(self, x, y):
        if self.is_full:
            raise backend("torch").OutOfMemoryError("CUDA out of memory. Tried to allocate 12 GiB")
        return float(x @ y)


@contextmanager
def torch_calls():
    """Collect the names of the functions of torch that are called."""
    backend("torch")
    from torch.overrides import TorchFunctionMode

    names = set()

    class Watch(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            names.add(getattr(function, "__name__", str(function)))
            return function(*args, **(kwargs or {}))

    with Watch():
        yield names
