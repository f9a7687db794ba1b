"""batch_norm_inference: every rank, with and without weights, and that torch from 2.7 on does without it."""

import pytest
import torch
from torch import nn
from torch.torch_version import TorchVersion

from torch_onnx_compat import plan, symbolic
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_same_outputs


def norm(kind, affine=True):
    module = kind(3, affine=affine).eval()
    module.running_mean.normal_()
    module.running_var.uniform_(0.5, 2)
    return module


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize(
    ("kind", "shape"), [(nn.BatchNorm1d, (2, 3, 5)), (nn.BatchNorm2d, (1, 3, 4, 5)), (nn.BatchNorm3d, (2, 3, 2, 2, 3))]
)
def test_matches_eager(kind, shape, affine):
    name = "batch_norm_inference"
    model = nn.Sequential(nn.ReLU(), norm(kind, affine))
    result = assert_same_outputs(model, torch.randn(shape), "dynamo", dynamic="batch", include=[name], uses=[name])
    assert result.nodes["BatchNormalization"] == 1


def test_applied_only_where_needed():
    made = plan(norm(nn.BatchNorm2d), torch.randn(1, 3, 4, 4), exporter="dynamo")
    needed = TorchVersion(torch.__version__) < "2.7"
    assert ("batch_norm_inference" in made.armed) is needed
    if not needed:
        assert made.skipped["batch_norm_inference"] == "torch does without it from 2.7 on"


def test_sentinel():
    @symbolic("aten::_native_batch_norm_legit_no_training", name="broken", always=True, registry=None)
    def broken(op, input, weight, bias, running_mean, running_var, momentum, eps):
        empty = op.constant([], torch.float32)
        return op.BatchNormalization(input, weight, bias, running_mean, running_var, epsilon=0.5), empty, empty

    with pytest.raises(VerificationError):
        assert_same_outputs(
            nn.Sequential(nn.ReLU(), norm(nn.BatchNorm2d)), torch.randn(2, 3, 4, 4), "dynamo", symbolics=[broken]
        )
