import pytest
import torch
from torch.nn import functional as F

from torch_onnx_compat import rewrite
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "avg_pool3d_to_sum"
X = torch.randn(2, 2, 6, 7, 9)
DYNAMIC = {"x": {0: "batch", 3: "height"}}


def many(x):
    return (
        *(F.avg_pool3d(x, 3, 2, 1, divisor_override=2), F.avg_pool3d(x, (3, 2, 2), divisor_override=7)),
        *(
            F.avg_pool3d(x[0], 2),
            F.avg_pool3d(x[0], 3, 2, 1, True, False),
            F.avg_pool3d(x[0], 3, 2, 1, divisor_override=5),
        ),
    )


def test_matches(exporter):
    assert_same_outputs(many, (X,), exporter, dynamic=DYNAMIC, uses=(NAME,))


def test_takes_two_nodes():
    result = assert_same_outputs(
        lambda x: F.avg_pool3d(x, 3, 2, 1, divisor_override=2), (X,), "torchscript", dynamic=DYNAMIC, uses=(NAME,)
    )
    assert {k: v for k, v in result.nodes.items() if k != "Constant"} == {"AveragePool": 1, "Mul": 1}


def test_plain_pools_are_left_alone():
    result = assert_same_outputs(lambda x: F.avg_pool3d(x, 3, 2, 1), (X,), "torchscript", dynamic="batch")
    assert set(result.nodes) - {"Constant"} == {"AveragePool"}
    assert not result.declined


def test_declines_a_divisor_with_ceil_mode():
    with pytest.raises(CompatError, match=r"does not compute what the model computes|ceil_mode=False"):
        assert_same_outputs(lambda x: F.avg_pool3d(x, 3, 2, ceil_mode=True, divisor_override=2), (X,), "torchscript")


def test_sentinel():
    @rewrite(F.avg_pool3d, name=NAME, needed_on=("torchscript",), registry=None)
    def broken(input, kernel_size, stride=None, padding=0, ceil_mode=False, include=True, divisor_override=None):
        return F.avg_pool3d(input, kernel_size, stride, padding) / divisor_override

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(
            lambda x: F.avg_pool3d(x, 3, 2, 1, divisor_override=2), (X,), "torchscript", rewrites=[broken]
        )


def test_still_needed(exporter):
    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: F.avg_pool3d(x, 3, 2, 1, divisor_override=2), (X,), exporter, exclude=[NAME])
