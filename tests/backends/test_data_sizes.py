"""Which sizes of a trace values decide."""

from functools import lru_cache

import pytest
import torch

from torch_onnx_compat import export_compat
from torch_onnx_compat.backends.backend import FrozenDecision
from torch_onnx_compat.backends.data_sizes import DataSizes
from torch_onnx_compat.testing import assert_same_outputs

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.trace`:FutureWarning")

X = torch.tensor([[1.0, -1.0], [2.0, 3.0], [4.0, -2.0]])


def selected(x):
    """Of six values, four."""
    return x[x > 0]


CASES = {
    "a selection": (selected, {0}),
    "its last dimension": (lambda x: selected(x)[None], {1}),
    "stack of a list": (lambda x: torch.stack([selected(x), selected(x)], 1), {0}),
    "stack of a split": (lambda x: torch.stack(selected(x)[None].expand(2, -1).chunk(2), 0), {2}),
    "stack, counted from the end": (lambda x: torch.stack([selected(x)] * 2, -2), {1}),
    "unbind": (lambda x: selected(x)[None].expand(2, -1).unbind(0)[0], {0}),
    "unbind, counted from the end": (lambda x: selected(x)[:, None].expand(-1, 2).unbind(-1)[1], {0}),
    "reshape to a number": (lambda x: (x.flatten()[:4].reshape(2, 2) + selected(x).sum()).reshape(-1, 2), set()),
    "reshape of a selection": (lambda x: selected(x).reshape(-1, 2), {0}),
    "reshape that moves what varies": (lambda x: torch.stack([selected(x)] * 2).reshape(-1, 2), {0}),
    "repeats by a number": (lambda x: x.repeat_interleave(2, 1), set()),
    "repeats by a size": (lambda x: x.repeat_interleave(x.shape[1] + 1, 0), set()),
    "repeats of a selection": (lambda x: selected(x)[None].repeat_interleave(x.shape[1], 0), {1}),
    "repeats by values": (lambda x: x.repeat_interleave((x[:, 0] > 1).long() + 1, 0), {0}),
    "repeats by values, counted from the end": (lambda x: x.repeat_interleave((x[0] > 0).long() + 1, -1), {1}),
    "repeats by values, of no axis": (lambda x: torch.repeat_interleave((x[:, 0] > 1).long() + 1), {0}),
    "repeats by the size of a selection": (lambda x: x.repeat_interleave(selected(x).shape[0], 1), {1}),
    "numbers up to a value": (lambda x: torch.arange(x.max().long()), {0}),
    "numbers up to a size": (lambda x: torch.arange(x.shape[0] * 2), set()),
    "steps by a value": (lambda x: torch.linspace(0, 1, steps=x.max().long()), {0}),
    "zeros by a value and a size": (lambda x: torch.zeros(x.max().long(), x.shape[1]), {0}),
    "a square by a value": (lambda x: torch.eye(x.max().long()), {0, 1}),
    "rows up to a value": (lambda x: torch.cat([x, x])[: x.max().long()], {0}),
    "columns up to a size": (lambda x: x[:, : x.shape[0]], set()),
    "expanded by a value": (lambda x: x[:1].expand(x.max().long(), -1), {0}),
    "repeated by a value": (lambda x: x.repeat(1, x.max().long()), {1}),
    "repeated by a size": (lambda x: x.repeat(1, x.shape[0]), set()),
    "tiled by a value": (lambda x: x.tile((x.max().long(),)), {1}),
    "padded by a value": (lambda x: torch.nn.functional.pad(x, (0, 0, 0, x.max().long())), {0}),
    "viewed by a value, and the rest": (lambda x: torch.arange(12).view(x[1, 0].long(), -1), {0, 1}),
    "viewed by a size": (lambda x: x.view(x.shape[1], -1), set()),
    "classes by values": (lambda x: torch.nn.functional.one_hot(x[:, 0].long()), {1}),
    "classes by a number": (lambda x: torch.nn.functional.one_hot(x[:, 0].long(), 7), set()),
    "counts of values": (lambda x: torch.bincount(x[:, 0].long()), {0}),
    "a selection's sum": (lambda x: selected(x).sum() + x, set()),
}


@pytest.mark.parametrize(("function", "dims"), CASES.values(), ids=CASES)
def test_dimensions(function, dims):
    graph = torch.jit.trace(function, X, check_trace=False).graph
    assert DataSizes().dims(next(graph.outputs())) == dims


def test_a_selection_as_long_as_a_number_in_the_call():
    """Two rows of two: the block of four elements may be cut anywhere."""

    def function(x):
        return torch.stack([x[x > 2.5]] * 2).reshape(-1, 2)  # (2, n = 2)

    graph = torch.jit.trace(function, X, check_trace=False).graph
    assert 0 in DataSizes().dims(next(graph.outputs()))


# Repeats

ROWS = torch.randn(2, 3, 8)


@lru_cache
def halves(size):
    """As einops keeps what it made of a pattern and sizes."""
    return 2, size // 2


def by_size(x):
    rows = x.repeat_interleave(x.shape[2] // 4, 0)
    first, second = halves(rows.shape[1] * 2)
    return rows.reshape(-1, first, second, 4)


def by_values(x):
    rows = x.repeat_interleave((x[:, 0, 0] > 0).long() + 1, 0)
    first, second = halves(rows.shape[0] * 2)
    return rows.reshape(first, second, -1)


def test_a_key_of_a_size_after_repeats_by_a_size_is_no_decision_on_values(exporter):
    assert_same_outputs(by_size, ROWS, exporter, dynamic="batch")


def test_a_key_of_a_size_after_repeats_by_values_is_one():
    with pytest.raises(FrozenDecision, match="a key of the values of the inputs"):
        export_compat(by_values, (ROWS,), exporter="torchscript", verify=False, control_flow=False)


# Lengths that a number among the inputs gives


def steps(x, k):
    for number in torch.arange(k[0]):
        x = x * 0.5 + number
    return x


def counts(x, k):
    for number, count in enumerate(torch.bincount(k)):
        x = x + count * number
    return x


def first_of_counts(x, k):
    return x * torch.bincount(k)[:3].unbind()[0] + torch.eye(int(k.max()) + 1).unbind()[-1].sum()


def shares(x, k):
    return x + sum(torch.linspace(0, 1, int(k.max()) + 1).tolist()) + len(torch.ones(int(k.min())).unbind())


def of_lists(x, k):
    """Operators that are given lists of numbers."""
    count = int(k.max())
    made = (x[:1].expand(count, -1), x[:1].repeat(count, 1), torch.nn.functional.pad(x[:1], (0, 0, 0, count)))
    for tensor in made:
        for row in tensor:
            x = x * 0.5 + row
    return x


@pytest.mark.parametrize("model", [steps, counts, first_of_counts, shares, of_lists])
def test_lengths_follow_the_numbers(model, exporter):
    x, k = torch.randn(3, 4), torch.tensor([3, 1, 2])
    result = export_compat(model, (x, k), dynamic={"x": {0: "batch"}}, exporter=exporter)
    for numbers in ((3, 1, 2), (1, 1, 1), (2, 5, 1), (7, 4, 4)):
        k = torch.tensor(numbers)
        torch.testing.assert_close(result(x, k)[0], model(x, k), rtol=1e-4, atol=1e-4)


def test_lengths_that_weights_give_stay():
    class Counted(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.tensor(3))

        def forward(self, x):
            return x + sum(torch.arange(self.count).unbind())

    assert_same_outputs(Counted(), X, "torchscript", dynamic="batch")
