import pytest
import torch
from torch import nn

from torch_onnx_compat import rewrite
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "instance_norm_to_batch_norm"
X = torch.randn(2, 3, 4, 5)
DYNAMIC = {"x": {0: "batch", 2: "height"}}


class Tracked(nn.Module):
    """With and without weights; the statistics are those of no instance."""

    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList([nn.InstanceNorm2d(3, affine=affine, track_running_stats=True) for affine in (0, 1)])
        for norm in self.norms:
            nn.init.uniform_(norm.running_mean)
            nn.init.uniform_(norm.running_var)

    def forward(self, x):
        return tuple(norm(x) for norm in self.norms)


def test_matches_and_applied():
    result = assert_same_outputs(Tracked().eval(), X, "torchscript", dynamic=DYNAMIC, uses=(NAME,))
    assert {k for k in result.nodes if k != "Constant"} == {"BatchNormalization"}


def test_statistics_of_the_instance_are_left_alone():
    norm = nn.InstanceNorm2d(3, affine=True).eval()
    result = assert_same_outputs(norm, X, "torchscript", dynamic={"input": {0: "batch", 2: "height"}})
    assert result.nodes == {"InstanceNormalization": 1}
    assert not result.applied


def test_dynamo_does_without():
    assert not assert_same_outputs(Tracked().eval(), X, "dynamo", dynamic=DYNAMIC).applied


def test_sentinel():
    @rewrite(torch.instance_norm, name=NAME, needed_on=("torchscript",), registry=None)
    def broken(input, *rest):
        return input * 2

    with pytest.raises(VerificationError):
        assert_same_outputs(Tracked().eval(), X, "torchscript", rewrites=[broken])


def test_still_needed():
    with pytest.raises(CompatError, match="instance_norm"):
        assert_same_outputs(Tracked().eval(), X, "torchscript", dynamic=DYNAMIC, exclude=[NAME])
