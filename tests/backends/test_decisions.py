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
    result = assert_same_outputs(Decides().eval(), X, "torchscript", dynamic=DYNAMIC, samples=samples)
    assert "control_flow applied" in str(result)


def unless_empty(x):
    if x.numel() == 0:
        return x.reshape(0, 7)
    if x.shape[0] < 1 or not x.shape[1] > 0:
        return x - 1
    return x[:, :2].relu() * 2


def test_asking_whether_an_input_is_empty_is_no_decision():
    result = assert_same_outputs(unless_empty, X, "torchscript", dynamic=DYNAMIC)
    assert FROZEN not in str(result)
    assert "If" not in result.nodes


def few(x):
    found = x[x[:, 0] > 0]
    if found.shape[0] == 0:
        return x.sum(0)
    return found.sum(0) + 1


def rest(x):
    return x.sum() if x[2:].numel() == 0 else x[2:].sum() + 1


def test_asking_whether_something_found_is_empty_stays_a_decision():
    assert_same_outputs(few, X.abs(), "torchscript", dynamic=DYNAMIC, samples=[(-torch.rand(3, 3),)])
    assert_same_outputs(rest, torch.randn(4, 3), "torchscript", dynamic=DYNAMIC, samples=[(torch.randn(2, 3),)])
