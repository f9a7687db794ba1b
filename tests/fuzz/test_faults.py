"""Exports that are interrupted at random lines, or killed: nothing is lost, and nothing stays changed."""

import inspect
import logging
import os
import sys
import tempfile

import pytest
from torch import nn
from torch.nn.utils import rnn

from fuzz.faults import EXCEPTIONS, SCENARIOS, Injector, Killer, Place, Tracer
from torch_onnx_compat.backends import quiet
from torch_onnx_compat.caller import undo as caller
from torch_onnx_compat.questions import run
from torch_onnx_compat.rewrite import _exchange

FAULTS = [(name, list(EXCEPTIONS)[seed % 3], seed) for name in SCENARIOS for seed in range(5)]
"""Thirty: each scenario with each exception, at places that the seeds choose."""


@pytest.fixture(scope="module")
def injectors(tmp_path_factory):
    """An injector for each scenario, made when it is asked for; temporary files go to a folder of their own."""
    made = {}
    before, tempfile.tempdir = tempfile.tempdir, str(tmp_path_factory.mktemp("temporary"))

    def make(name):
        if name not in made:
            made[name] = Injector(name, tmp_path_factory.mktemp("files"))
        return made[name]

    yield make
    tempfile.tempdir = before


@pytest.mark.parametrize("name", SCENARIOS)
def test_an_export_without_a_fault_changes_nothing(name, injectors):
    assert injectors(name).export_whole() == []


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # an interrupted generator's last words
@pytest.mark.parametrize(("name", "exception", "seed"), FAULTS)
def test_after_a_fault(name, exception, seed, injectors):
    outcome = injectors(name).inject(exception, seed)
    assert outcome.is_fine, outcome


@pytest.mark.skipif(sys.platform == "win32", reason="forks and signals")
@pytest.mark.parametrize("part", range(8))
def test_after_a_kill(part, killer):
    outcome = killer.kill(part * killer.points // 2 + 1)
    assert outcome.is_fine, outcome


@pytest.fixture(scope="module")
def killer(tmp_path_factory):
    return Killer(tmp_path_factory.mktemp("killed"))


def interrupted_lines(work):
    """Does some work once for each line of `quiet` that it runs, with an interrupt at that line."""
    places = []
    with Tracer(places.append, (quiet.__file__,)).active():
        work()
    for number in range(len(places)):
        left = [number]

        def visit(place: Place, left=left):
            left[0] -= 1
            if left[0] < 0:
                left[0] = 10**9
                raise KeyboardInterrupt(str(place))

        try:
            with Tracer(visit, (quiet.__file__,)).active():
                work()
        except KeyboardInterrupt:
            pass
        yield places[number]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_streams_come_back_from_an_interrupt_at_any_line(capfd):
    def work():
        with quiet.without_graph_dump():
            os.write(1, b"said\n")

    streams = [os.fstat(number).st_ino for number in (1, 2)]
    places = []
    for place in interrupted_lines(work):
        assert [os.fstat(number).st_ino for number in (1, 2)] == streams, place
        os.write(1, b"afterwards\n")
        assert capfd.readouterr().out.endswith("afterwards\n"), place
        places.append(place)
    assert len(places) > 50


def test_levels_come_back_from_an_interrupt_at_any_line():
    def work():
        with quiet.quiet_logs():
            pass

    levels = [logging.getLogger(name).level for name in quiet._LOGGERS]
    for place in interrupted_lines(work):
        assert [logging.getLogger(name).level for name in quiet._LOGGERS] == levels, place


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("function", [caller.memory_of, run._run], ids=lambda f: f.__name__)
def test_an_interrupt_between_a_with_and_its_end(function, injectors):
    """Python runs the line of a ``with`` again to end it; what interrupts it there leaves the context in force."""
    lines, start = inspect.getsourcelines(function)
    line = start + next(number for number, text in enumerate(lines) if text.lstrip().startswith("with "))
    outcome = injectors("torchscript").inject_at("KeyboardInterrupt", Place(function.__code__.co_filename, line), 2)
    assert outcome.raised == "KeyboardInterrupt"
    assert outcome.is_fine, outcome


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_functions_come_back_from_an_interrupt_at_any_line_of_their_exchange(injectors):
    code = _exchange.__code__
    exchanged = [(rnn, "pack_padded_sequence"), (rnn, "pad_packed_sequence"), (nn.RNNBase, "check_forward_args")]
    before = [vars(owner)[name] for owner, name in exchanged]
    tried = 0
    for line in sorted({line for _, _, line in code.co_lines() if line}):
        outcome = injectors("torchscript").inject_at("KeyboardInterrupt", Place(code.co_filename, line), 2)
        assert [vars(owner)[name] for owner, name in exchanged] == before, line
        if outcome.raised == "KeyboardInterrupt":
            assert outcome.is_fine, outcome
            tried += 1
    assert tried > 3


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("time", range(1, 4))
def test_an_interrupt_while_everything_is_put_back(time, injectors):
    function = inspect.unwrap(caller.put_back)
    lines, start = inspect.getsourcelines(function)
    line = start + next(number for number, text in enumerate(lines) if "stack.close()" in text)
    place = Place(function.__code__.co_filename, line)
    outcome = injectors("torchscript").inject_at("KeyboardInterrupt", place, time)
    assert outcome.raised == "KeyboardInterrupt"
    assert outcome.is_fine, outcome
