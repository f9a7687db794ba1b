import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "fold_to_take"

CASES = [
    ((7, 6), (3, 2), 1, 0, 1),
    ((7, 6), 2, 1, 0, 3),
    ((8, 6), 2, 1, 0, 2),
    ((7, 6), (3, 2), (2, 1), (1, 2), (2, 3)),
    ((5, 5), 1, 1, 1, 2),
    ((3, 2), (3, 2), 1, 0, 1),
]


def windows(*lead, case):
    size, *rest = case
    return F.unfold(torch.randn(*lead, *size), *rest)


PAIRS = st.tuples(st.integers(1, 3), st.integers(1, 3))
SIZES = st.integers(3, 8)


class Folds(nn.Module):
    def forward(self, *xs):
        return tuple(F.fold(x, *case) for x, case in zip(xs, CASES, strict=True))


def test_matches(exporter):
    opset, uses = (17, (NAME,)) if exporter == "torchscript" else (None, ())
    args = tuple(windows(2, 3, case=case) for case in CASES)
    assert_same_outputs(Folds(), args, exporter, opset=opset, dynamic="batch", uses=uses)


def test_matches_at_dynamic_sizes():
    def call(x):
        y = F.fold(F.unfold(x, 3, 1, 1, 2), x.shape[2:], 3, 1, 1, 2)
        return y, F.fold(F.unfold(x, 2, 2), (x.shape[2], x.shape[3]), 2, 2)

    dynamic = {"x": {0: "batch", 2: "height", 3: "width"}}
    assert_same_outputs(
        call,
        (torch.randn(2, 3, 9, 8),),
        "torchscript",
        dynamic=dynamic,
        samples=[(torch.randn(3, 3, 7, 8),)],
        uses=(NAME,),
    )


def test_an_infinite_cell_stays_where_it_is():
    x = windows(2, 3, case=CASES[0])
    x[0, 0, 0] = torch.inf
    assert_same_outputs(lambda x: F.fold(x, *CASES[0]), (x,), "torchscript", uses=(NAME,))


@given(kernel=PAIRS, dilation=PAIRS, padding=st.integers(0, 1), stride=PAIRS, size=st.tuples(SIZES, SIZES))
@settings(max_examples=150, deadline=None)
def test_equals_eager(kernel, dilation, padding, stride, size):
    assume(all(n + 2 * padding > d * (k - 1) for n, d, k in zip(size, dilation, kernel, strict=True)))
    case = (size, kernel, dilation, padding, stride)
    x = windows(2, 3, case=case)
    torch.testing.assert_close(catalogue()[NAME].body(x, *case), F.fold(x, *case))


def test_takes_no_col2im():
    x = windows(2, 3, case=CASES[2])
    result = assert_same_outputs(lambda x: F.fold(x, *CASES[2]), (x,), "torchscript", dynamic="batch", uses=(NAME,))
    assert {k: v for k, v in result.nodes.items() if k != "Constant"} == {"Reshape": 2, "Gather": 1}


def test_unfold_is_left_alone():
    result = assert_same_outputs(lambda x: F.unfold(x, 3), (torch.randn(1, 2, 5, 6),), "torchscript")
    assert not result.applied


def test_sentinel():
    @rewrite(F.fold, name=NAME, needed_on=("torchscript",), registry=None)
    def broken(input, *args, **kwargs):
        return catalogue()[NAME].body(input.flip(1), *args, **kwargs)

    x = windows(2, 3, case=CASES[0])
    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: F.fold(x, *CASES[0]), (x,), "torchscript", rewrites=[broken])


def test_still_needed():
    x = windows(2, 3, case=CASES[0])
    with pytest.raises(CompatError, match="Col2Im"):
        assert_same_outputs(lambda x: F.fold(x, *CASES[0]), (x,), "torchscript", opset=17, exclude=[NAME])
