"""Which sizes of a trace values decide."""

import pytest
import torch

from torch_onnx_compat.backends.data_sizes import DataSizes

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
