"""Normalizations, in rows; their nodes; RMS normalization against eager torch in every type."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F
from torch.torch_version import TorchVersion
from torch_onnx_compat.symbolics.normalization import (
    batch_norm_inference,
    batch_norm_of_batch,
    group_norm_of_mixed_types,
    instance_norm_to_batch_norm,
    layer_norm_of_mixed_types,
    rms_norm_to_mean,
)

from torch_onnx_compat import plan
from torch_onnx_compat.testing import Example, assert_entry, assert_same_outputs

IMAGES = torch.randn(3, 4, 5, 6) * 3 + 1
SIZES = {"input": {0: "batch", 2: "height", 3: "width"}}
LENGTHS = {"input": {0: "batch", 1: "length"}}


def with_statistics(norm):
    """The module in eval mode, with running statistics and weights that are not those of a new one."""
    with torch.no_grad():
        for parameter in norm.parameters():
            parameter.normal_()
    if norm.running_mean is not None:
        norm.running_mean.normal_()
        norm.running_var.uniform_(0.5, 2)
    return norm.eval()


class BatchNorms(nn.Module):
    """Two layers that keep no statistics, with and without weights, and one of rows."""

    def __init__(self):
        super().__init__()
        self.first = with_statistics(nn.BatchNorm2d(4, track_running_stats=False))
        self.second = nn.BatchNorm2d(4, eps=0.1, affine=False, track_running_stats=False)
        self.rows = nn.BatchNorm1d(4, track_running_stats=False)

    def forward(self, input):
        return self.second(self.first(input).square()), self.rows(input[:, :, 0])


class InstanceNorms(nn.Module):
    """With and without weights; the statistics are those of no instance."""

    def __init__(self):
        super().__init__()
        norms = [nn.InstanceNorm2d(4, affine=affine, track_running_stats=True) for affine in (False, True)]
        self.norms = nn.ModuleList(map(with_statistics, norms))

    def forward(self, input):
        return tuple(norm(input) for norm in self.norms)


class RMSNorms(nn.Module):
    """Every default, type and rank of the normalised axes."""

    def __init__(self):
        super().__init__()
        self.norm = nn.RMSNorm(6)
        nn.init.normal_(self.norm.weight)

    def forward(self, input):
        x, half = input, input.half()
        return (
            *(self.norm(x), self.norm(x * 1e-4), F.rms_norm(x, (6,)), F.rms_norm(x, (6,), eps=0.1)),
            *(F.rms_norm(x.double(), (6,)), F.rms_norm(half, (6,), self.norm.weight.half())),
            F.rms_norm(x.reshape(-1, 2, 3), (2, 3), eps=1e-3),
        )


class Mixed(nn.Module):
    """Norms with float32 weights of a float16 input, as under autocast."""

    def __init__(self, *norms):
        super().__init__()
        self.norms = nn.ModuleList(norms)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.normal_()

    def forward(self, input):
        return tuple(norm(input.half()) for norm in self.norms)


def with_another_eps(op, input, weight, bias, running_mean, running_var, momentum, eps):
    return batch_norm_inference(op, input, weight, bias, running_mean, running_var, momentum, 0.5)


INFERENCE = Example(
    "batch_norm_inference",
    nn.Sequential(nn.ReLU(), with_statistics(nn.BatchNorm2d(4))),
    (IMAGES,),
    broken=with_another_eps,
)
"""In torch from 2.7 on the entry is armed only by name: see the tests below."""

EXAMPLES = [
    INFERENCE,
    Example(
        "batch_norm_of_batch",
        BatchNorms().eval(),
        (IMAGES,),
        broken=lambda input, mean, var, weight=None, bias=None, **rest: batch_norm_of_batch(
            input, mean, var, weight, None, **rest
        ),
        dynamic=SIZES,
        leaves=nn.BatchNorm2d(4).eval(),
    ),
    Example(
        "instance_norm_to_batch_norm",
        InstanceNorms().eval(),
        (IMAGES,),
        broken=lambda input, weight, bias, mean, var, *rest: instance_norm_to_batch_norm(
            input, weight, bias, mean * 0, var, *rest
        ),
        dynamic=SIZES,
        leaves=nn.InstanceNorm2d(4, affine=True).eval(),
    ),
    Example(
        "rms_norm_to_mean",
        RMSNorms().eval(),
        (torch.randn(2, 3, 6),),
        broken=lambda input, shape, weight=None, eps=None: rms_norm_to_mean(input, shape, weight),
        dynamic=LENGTHS,
        leaves=nn.LayerNorm(6).eval(),
    ),
    Example(
        "layer_norm_of_mixed_types",
        Mixed(nn.LayerNorm(6), nn.LayerNorm((3, 6), bias=False, eps=0.1)),
        (torch.randn(2, 3, 6),),
        broken=lambda input, shape, weight=None, bias=None, eps=1e-5: layer_norm_of_mixed_types(
            input, shape, weight, None, 0.5
        ),
        leaves=nn.LayerNorm(6).eval(),
    ),
    Example(
        "group_norm_of_mixed_types",
        Mixed(nn.GroupNorm(1, 3), nn.GroupNorm(3, 3, eps=0.1)),
        (torch.randn(2, 3, 6),),
        broken=lambda input, groups, weight=None, bias=None, eps=1e-5: group_norm_of_mixed_types(
            input, groups, weight, None, 0.5
        ),
        dynamic={"input": {0: "batch", 2: "length"}},
        leaves=nn.GroupNorm(1, 3).eval(),
        claims=("torchscript",),  # through dynamo it is needed behind a convolution in bfloat16
    ),
]


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize(
    ("kind", "shape"), [(nn.BatchNorm1d, (2, 3, 5)), (nn.BatchNorm2d, (1, 3, 4, 5)), (nn.BatchNorm3d, (2, 3, 2, 2, 3))]
)
def test_batch_norm_inference_by_name(kind, shape, affine):
    model = nn.Sequential(nn.ReLU(), with_statistics(kind(3, affine=affine)))
    result = assert_entry(
        INFERENCE.entry, model, torch.randn(shape), "dynamo", dynamic="batch", include=[INFERENCE.entry]
    )
    assert result.nodes["BatchNormalization"] == 1


def test_batch_norm_inference_by_name_bites():
    replace(INFERENCE, options={"include": [INFERENCE.entry]}).assert_bites("dynamo")


def test_batch_norm_inference_is_armed_only_where_needed():
    made = plan(INFERENCE.model, IMAGES, exporter="dynamo")
    needed = TorchVersion(torch.__version__) < "2.7"
    assert (INFERENCE.entry in made.armed) is needed
    if not needed:
        assert made.skipped[INFERENCE.entry] == "torch does without it from 2.7 on"


@pytest.mark.dynamo_from("2.7", "batch norms by the batch are translated wrong")
def test_batch_norm_of_batch_at_one_size(exporter):
    assert_entry("batch_norm_of_batch", BatchNorms().eval(), IMAGES, exporter)


def test_instance_norm_is_one_node():
    result = assert_same_outputs(
        InstanceNorms().eval(), IMAGES, "torchscript", dynamic=SIZES, uses=("instance_norm_to_batch_norm",)
    )
    assert set(result.nodes) - {"Constant"} == {"BatchNormalization"}


def test_statistics_of_the_instance_stay_one_node():
    result = assert_same_outputs(nn.InstanceNorm2d(4, affine=True).eval(), IMAGES, "torchscript", dynamic=SIZES)
    assert result.nodes == {"InstanceNormalization": 1}
    assert not result.applied


@pytest.mark.dynamo_from("2.7", "batch norms by the batch are translated wrong")
def test_dynamo_does_without():
    assert not assert_same_outputs(InstanceNorms().eval(), IMAGES, "dynamo", dynamic=SIZES).applied
    assert not assert_same_outputs(nn.RMSNorm(6).eval(), torch.randn(2, 3, 6), "dynamo").applied


def test_layer_norm_is_left_alone():
    assert not assert_same_outputs(nn.LayerNorm(6).eval(), torch.randn(2, 3, 6), "torchscript").applied


def test_rms_norm_is_six_nodes():
    norm = nn.RMSNorm(6).eval()
    nn.init.normal_(norm.weight)
    result = assert_same_outputs(norm, torch.randn(2, 3, 6), "torchscript", uses=("rms_norm_to_mean",))
    assert dict(result.nodes) == {"Mul": 2, "ReduceMean": 1, "Add": 1, "Sqrt": 1, "Div": 1}


@pytest.mark.skipif(
    TorchVersion(torch.__version__) < "2.9", reason="without eps torch 2.6 takes the one of float16 for float16"
)
@given(
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    eps=st.sampled_from((None, 0.0, 0.5)),
    dtype=st.sampled_from((torch.float32, torch.float64, torch.float16, torch.bfloat16)),
    scale=st.sampled_from((1e-4, 1.0, 300.0)),
)
@settings(max_examples=100, deadline=None)
def test_rms_norm_equals_eager(shape, eps, dtype, scale):
    x = (torch.randn(2, *shape) * scale + 0.01).to(dtype)
    weight = torch.randn(shape).to(dtype)
    torch.testing.assert_close(rms_norm_to_mean(x, shape, weight, eps), F.rms_norm(x, shape, weight, eps))
