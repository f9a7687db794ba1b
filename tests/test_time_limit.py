"""Runs of a model that do not end are ended, and leave nothing behind."""

import gc
import sys
import time

import pytest
import torch

from torch_onnx_compat import export_compat
from torch_onnx_compat.time_limit import TimeLimit, TooLong

X = torch.randn(5, 4)


def rounds_of_python(x):
    y = x.sum(0) * 0
    for i in range(int(x.abs().max()) + 1):
        if i < x.shape[0]:
            y = y + x[i] * i
    return y


def one_line(x):
    return sum(x[i] * i for i in range(int(x.abs().max()) + 1) if i < x.shape[0])


def with_a_handler(x):
    while True:
        try:
            while True:
                pass
        except Exception:  # whatever an error is, the loop goes on
            x = x + 1


def operations(x):
    while True:
        x = x + 1


class Finalized:
    def __del__(self):
        wait()


def wait():
    end = time.perf_counter() + 0.3
    while time.perf_counter() < end:
        pass


def finalizers(x):
    while True:
        Finalized()


def collections(x):
    while True:
        gc.collect(0)


@pytest.fixture
def callback_of_the_collector():
    def callback(phase, info):
        wait()

    gc.callbacks.append(callback)
    yield
    gc.callbacks.remove(callback)


@pytest.mark.usefixtures("callback_of_the_collector")
@pytest.mark.parametrize("model", [finalizers, collections])
def test_a_run_is_ended_where_an_error_is_not_lost(model):
    """Python prints errors of `__del__` and of callbacks of its collector, and goes on."""
    lost = []
    before, sys.unraisablehook = sys.unraisablehook, lost.append
    try:
        with pytest.raises(TooLong), TimeLimit(0.1):
            model(X)
    finally:
        sys.unraisablehook = before
    assert not lost


@pytest.mark.parametrize("model", [rounds_of_python, one_line, with_a_handler, operations])
def test_a_run_is_ended(model):
    started = time.perf_counter()
    with pytest.raises(TooLong), TimeLimit(0.2):
        model(torch.full((5, 4), 3e38))
    assert time.perf_counter() - started < 10


def test_a_debugger_is_put_back():
    def debugger(*_):
        return None

    before = sys.gettrace()
    sys.settrace(debugger)
    try:
        with pytest.raises(KeyboardInterrupt), TimeLimit(10):
            raise KeyboardInterrupt
        assert sys.gettrace() is debugger
    finally:
        sys.settrace(before)


@pytest.mark.parametrize("model", [rounds_of_python, one_line])
def test_a_model_that_does_not_end_at_the_largest_numbers(model, exporter):
    """The numbers of rounds are values: range(int(3.4e38))."""
    result = export_compat(model, (X,), dynamic={"x": {0: "b"}}, exporter=exporter)
    assert any(note.startswith("not tried at the largest inputs: the model does not end") for note in result.notes)
    for rows in (1, 2, 5, 9):
        for x in (torch.randn(rows, 4), 5 * torch.randn(rows, 4)):
            wanted = torch.as_tensor(model(x))
            torch.testing.assert_close(result(x)[0], wanted, rtol=1e-4, atol=1e-5)


def test_a_limit_is_over_after_its_run():
    """A mode enters itself once more for the branches of a cond; nothing of it stays."""
    before = sys.gettrace()

    def branches(x):
        return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))

    with torch.no_grad():
        with TimeLimit(10):
            branches(X)
            assert sys.gettrace() is not before
        assert sys.gettrace() is before
        with pytest.raises(TooLong), TimeLimit(-1.0):
            branches(X)
    assert sys.gettrace() is before
