"""Sizes of the arguments of torch's functions: those of the symbolic run are those of eager runs at other sizes."""

from __future__ import annotations

import itertools
import math
import random
from contextlib import nullcontext

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from torch_onnx_compat import export_compat
from torch_onnx_compat.backends import internals
from torch_onnx_compat.observe import Observation
from torch_onnx_compat.prepare import prepare
from torch_onnx_compat.questions.run import SymbolicRuns
from torch_onnx_compat.questions.size_facts import SizeFacts
from torch_onnx_compat.tracing import function_modes, inner_trace
from torch_onnx_compat.watch import CallCounter, Watcher

FUNCTIONS = [torch.roll, F.interpolate, torch.cat, F.adaptive_avg_pool2d, nn.functional.pad]


class Calls(nn.Module):
    """Sizes that are fixed, dynamic, made of dynamic ones, fixed though made of them, and calls inside of calls."""

    def forward(self, x):
        n, c, h, w = x.shape
        x = torch.roll(x, 1, 2)
        y = F.interpolate(x, size=(6, w // 2), mode="bilinear")
        z = torch.cat([y, y.flip(1)], 1)
        even = F.pad(x, (0, (-w) % 8, 0, 0))
        if h > 4:
            even = torch.roll(even, 2, 3)
        pooled = F.adaptive_avg_pool2d(even, 3)
        fixed = x.reshape(n, c * h * w // h // w, -1)
        return z, pooled, torch.roll(fixed, 1, 1), torch.roll(x.mean(0), 1, 0)


class Asker(CallCounter):
    """Asks for the sizes of every argument of every call."""

    def __init__(self, facts):
        super().__init__(FUNCTIONS)
        self.facts, self.found = facts, []

    def watch(self, func, args, kwargs):
        number = self.number(func, args, kwargs)
        tensors = args[0] if isinstance(args[0], list) else [args[0]]
        self.found.append([self.facts.of_call(number, args, kwargs)(x) for x in tensors])
        return self.pass_on(func, args, kwargs)


def found_by(model, x, dynamic, *, is_symbolic):
    prepared = prepare(model.eval(), (x,), dynamic=dynamic)
    runs = SymbolicRuns(Observation(prepared), FUNCTIONS)
    if not is_symbolic:
        runs.at({}).obstacle = "none is wanted"
    inputs = runs.observation.trace_inputs()
    asker = Asker(SizeFacts(runs, FUNCTIONS, inputs))
    with torch.no_grad(), asker:
        model(*inputs.tensors)
    return asker.found


@pytest.mark.parametrize("dynamic", ["batch", {"x": {0: "n", 2: "h", 3: "w"}}, {"x": {3: "w"}}, None])
def test_both_ways_agree(dynamic):
    x = torch.randn(2, 3, 8, 16)
    assert found_by(Calls(), x, dynamic, is_symbolic=True) == found_by(Calls(), x, dynamic, is_symbolic=False)


def test_fixed_sizes_are_told():
    found = found_by(Calls(), torch.randn(2, 3, 8, 16), {"x": {0: "n", 2: "h", 3: "w"}}, is_symbolic=True)
    assert found[0] == [(None, 3, None, None)]
    assert [(None, 3, 6, None)] * 2 in found
    assert found[-2][0][1] == 3


def test_a_size_that_differs_where_no_run_was_made_is_not_fixed():
    """It is 4 at every size that an eager run is made at."""

    class Bounded(nn.Module):
        def forward(self, x):
            return torch.roll(x[:, : 4 - 4 // (x.shape[1] + 1)], 1, 1)

    x = torch.randn(2, 8)
    by_runs = found_by(Bounded(), x, {"x": {1: "length"}}, is_symbolic=False)
    by_symbols = found_by(Bounded(), x, {"x": {1: "length"}}, is_symbolic=True)
    assert by_runs == [[(2, 4)]]
    assert by_symbols == [[(2, None)]]


def test_no_run_is_made_at_sizes_that_fill_the_memory(monkeypatch):
    """Models ask whether an index fits 32 bits, and take another kernel where it does not."""
    elements, log_shapes = [], Observation.log_shapes

    def log_elements(self, functions, inputs):
        elements.append(inputs.tensors[0].numel())
        return log_shapes(self, functions, inputs)

    class Large(nn.Module):
        def forward(self, x):
            return torch.roll(x.contiguous() if 16 * x.numel() > 2**28 else x, 1, 2)

    monkeypatch.setattr(Observation, "log_shapes", log_elements)
    x = torch.randn(2, 3, 8, 16)
    assert found_by(Large(), x, {"x": {0: "n", 2: "h", 3: "w"}}, is_symbolic=False) == [[(None, 3, None, None)]]
    assert len(elements) > 1
    assert max(elements) < 2**22


def test_another_call_at_the_place_of_one_has_no_facts():
    runs = SymbolicRuns(Observation(prepare(Calls().eval(), (torch.randn(2, 3, 8, 16),), dynamic="batch")), FUNCTIONS)
    facts = SizeFacts(runs, FUNCTIONS, runs.observation.trace_inputs())
    other = torch.randn(2, 5, 8, 16)
    assert facts.of_call(0, (other, 1, 2), {})(other) is None
    assert facts.of_call(99, (other, 1, 2), {})(other) is None
    assert facts.of_call(None, (other, 1, 2), {})(other) is None


def test_what_weights_alone_decide_is_fixed_in_a_trace_of_the_whole_model():
    """In a branch that is traced for itself, everything is an input, weights too: there, nobody knows."""
    prepared = prepare(Calls().eval(), (torch.randn(2, 3, 8, 16),), dynamic="batch")
    runs = SymbolicRuns(Observation(prepared), FUNCTIONS)
    facts = SizeFacts(runs, FUNCTIONS, runs.observation.trace_inputs())
    weight, found = torch.ones(4, 5), {}

    class Asks(nn.Module):
        def forward(self, x):
            for where, scope in (("whole", nullcontext), ("part", inner_trace)):
                with scope():
                    found[where] = [facts.of_call(99, (y, 1, 0), {})(y) for y in (weight * 2, x[:, 0, 0] * 2)]
            return x * 2

    internals.trace(Asks(), (torch.randn(2, 3, 8, 16),))
    assert found == {"whole": [(4, 5), None], "part": [None, None]}


def test_a_trace_at_other_sizes_has_the_same_facts():
    runs = SymbolicRuns(Observation(prepare(Calls().eval(), (torch.randn(2, 3, 8, 16),), dynamic="batch")), FUNCTIONS)
    facts = SizeFacts(runs, FUNCTIONS, runs.observation.trace_inputs())
    found = []
    for batch in (2, 7):
        asker = Asker(facts)
        with torch.no_grad(), asker:
            Calls()(torch.randn(batch, 3, 8, 16))
        found.append(asker.found)
    assert found[0] == found[1]
    assert found[1][0] == [(None, 3, 8, 16)]


class Numbered(nn.Module):
    """Sizes that go through what makes a number of them, or that a decision on a size chooses."""

    def __init__(self, number):
        super().__init__()
        self.number = number

    def forward(self, x):
        return torch.roll(x[:, : self.number(x)], 1, 1)


NUMBERS = {
    "an index": lambda x: range(1000)[x.shape[1]],
    "a rounded fraction": lambda x: round(x.shape[1] / 2),
    "a text": lambda x: int(str(x.shape[1])),
    "C++": lambda x: torch.empty(x.shape[1]).unfold(0, 2, 1).numpy().shape[0],
    "a decision": lambda x: 4 if x.shape[1] > 6 else 2,
    "a key": lambda x: {8: 4}.get(x.shape[1], 3),
    "a loop": lambda x: sum(2 for _ in range(x.shape[1] // 3)),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_a_size_that_became_a_number_is_not_fixed(name):
    found = found_by(Numbered(NUMBERS[name]), torch.randn(2, 8), {"x": {1: "length"}}, is_symbolic=True)
    assert found == [[(2, None)]]


class Random(nn.Module):
    """Rolls parts of the input, none longer than 7, whose sizes are made of its sizes in a random way."""

    def __init__(self, seed):
        super().__init__()
        self.seed = seed

    def forward(self, x):
        choose = random.Random(self.seed)
        numbers = [*x.shape, 3, 5]
        for _ in range(choose.randint(1, 6)):
            a, b = choose.choice(numbers), choose.choice(numbers)
            numbers.append(choose.choice(MAKERS)(a, b))
        results = []
        for number in numbers[5:]:
            part = x[:, :, : choose.choice(BOUNDS)(number)]
            results.append(torch.roll(torch.cat([part, part], choose.choice([0, 1, 2])), 1, 2))
        return results


BOUNDS = [lambda n: n % 7 + 1, lambda n: torch.sym_min(n, 6), lambda n: n % 5 + 2, lambda n: n // 2 - n // 2 + 3]

MAKERS = [
    lambda a, b: a + b,
    lambda a, b: a - b,
    lambda a, b: a * b % 17,
    lambda a, b: a // (abs(b) + 1),
    lambda a, b: a % (abs(b) + 1),
    lambda a, b: int(a) + 1,
    lambda a, b: round(a / 2) + b,
    lambda a, b: math.ceil(a / 3),
    lambda a, b: a if a > b else b + 1,
    lambda a, b: 2 if a == 8 else 5,
    lambda a, b: torch.sym_max(a, b),
    lambda a, b: min(a, b, 6),
    lambda a, b: len(range(0, abs(a) % 20, 2)),
    lambda a, b: int(f"{a}") % 9,
    lambda a, b: torch.arange(abs(a) % 12 + 1).numel(),
    lambda a, b: a - a + b - b + 4,
]


@pytest.mark.parametrize("seed", range(60))
def test_random_sizes_that_are_fixed_are_so_in_every_run(seed):
    x, dynamic = torch.randn(2, 3, 8), {"x": {0: "n", 2: "length"}}
    found = found_by(Random(seed), x, dynamic, is_symbolic=True)
    for n, length in itertools.product((1, 2, 3, 7), (7, 8, 9, 10, 11, 12, 13, 16, 20, 23, 40)):
        counter = Shapes()
        with torch.no_grad(), counter:
            Random(seed)(torch.randn(n, 3, length))
        for known, shapes in zip(found, counter.shapes, strict=True):
            for sizes, shape in zip(known, shapes, strict=True):
                assert sizes is None or all(k in (None, size) for k, size in zip(sizes, shape, strict=True))


class Shapes(CallCounter):
    """The shapes of the arguments of every call."""

    def __init__(self):
        super().__init__(FUNCTIONS)
        self.shapes = []

    def watch(self, func, args, kwargs):
        self.number(func, args, kwargs)
        tensors = args[0] if isinstance(args[0], list) else [args[0]]
        self.shapes.append([tuple(tensor.shape) for tensor in tensors])
        return self.pass_on(func, args, kwargs)


def test_no_trace_hears_of_the_runs_for_them(monkeypatch):
    """Each of their calls would go through everything that watches the trace."""
    watching = []
    log_shapes = Observation.log_shapes

    def note(self, functions, inputs):
        watching.extend(mode for mode in function_modes() if isinstance(mode, Watcher))
        return log_shapes(self, functions, inputs)

    monkeypatch.setattr(Observation, "log_shapes", note)
    dynamic = {"x": {0: "n", 2: "h", 3: "w"}}
    export_compat(Calls().eval(), (torch.rand(2, 3, 8, 8),), dynamic=dynamic, exporter="torchscript", verify=False)
    assert not watching
