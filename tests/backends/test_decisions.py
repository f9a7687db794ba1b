import torch
from torch import nn

from torch_onnx_compat.testing import assert_same_outputs

X = torch.randn(2, 3)
DYNAMIC = {"x": {0: "batch"}}


class Checks(nn.Module):
    """Complains, in one branch or another, and does nothing else."""

    strict = False

    def forward(self, x):
        if x.shape[0] < 1:
            if self.strict:
                raise ValueError("an empty batch")
            else:
                print("an empty batch")
        return x * 2


class Decides(nn.Module):
    """Complains in one branch and computes in the other."""

    def forward(self, x):
        scale = 2
        if x.shape[0] > 100:
            if x.dim() != 2:
                raise ValueError("wanted two axes")
            scale = 3
        return x * scale


FROZEN = "would freeze a Python decision"


def test_a_check_within_a_check_is_no_decision():
    assert FROZEN not in str(assert_same_outputs(Checks().eval(), X, "torchscript", dynamic=DYNAMIC))


def test_a_result_beside_a_check_is_a_decision():
    samples = [(torch.randn(101, 3),)]
    assert FROZEN in str(assert_same_outputs(Decides().eval(), X, "torchscript", dynamic=DYNAMIC, samples=samples))
