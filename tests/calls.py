"""Watch what functions are called with, without replacing them."""

import sys
import threading
from contextlib import contextmanager
from typing import Any, NamedTuple


class Call(NamedTuple):
    """One call, and the module that made it."""

    arguments: dict[str, Any]
    result: Any
    caller: str


@contextmanager
def recorded_calls(*functions):
    """Give a list of the calls of functions that end within a ``with`` statement.

    The profiler of Python reports every call, from wherever it comes: nothing is replaced, so a
    function that is moved, or imported under another name, is still found.  Calls from threads
    that start in the meantime count, too.  Arguments and results are the objects themselves.
    """
    codes = {getattr(function, "__func__", function).__code__ for function in functions}
    calls: list[Call] = []
    open_calls: dict[Any, dict[str, Any]] = {}

    def watch(frame, event, value):
        if frame.f_code in codes:
            if event == "call":
                open_calls[frame] = dict(frame.f_locals)
            elif event == "return":
                caller = frame.f_back.f_globals["__name__"]
                calls.append(Call(open_calls.pop(frame), value, caller))
        if before is not None:
            before(frame, event, value)

    before = sys.getprofile()
    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        yield calls
    finally:
        sys.setprofile(before)
        threading.setprofile(before)
