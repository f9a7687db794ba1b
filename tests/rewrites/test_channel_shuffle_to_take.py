import pytest
import torch
from torch import nn
from torch.nn import functional as F

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs

NAME = "channel_shuffle_to_take"
X = torch.randn(2, 12, 3, 5)
DYNAMIC = {"x": {0: "batch", 2: "height"}}


def many(x):
    return (
        *(torch.channel_shuffle(x, 3), F.channel_shuffle(x, 2), nn.ChannelShuffle(12)(x), torch.channel_shuffle(x, 1)),
        *(
            torch.channel_shuffle(x[..., 0], 4),
            torch.channel_shuffle(x.unsqueeze(-1), 6),
            torch.channel_shuffle(x > 0, 4),
        ),
    )


def test_matches(exporter):
    assert_entry(NAME, many, (X,), exporter, dynamic=DYNAMIC)


def test_takes_one_node():
    result = assert_same_outputs(nn.ChannelShuffle(3), (X,), "torchscript", dynamic="batch", uses=(NAME,))
    assert {k: v for k, v in result.nodes.items() if k != "Constant"} == {"Gather": 1}


def test_matches_with_any_number_of_channels():
    dynamic = {"x": {1: "channels"}}
    assert_same_outputs(
        lambda x: torch.channel_shuffle(torch.cat([x, x], 1), 2), (X,), "torchscript", dynamic=dynamic, uses=(NAME,)
    )


def test_other_rearrangements_are_left_alone():
    assert not assert_same_outputs(nn.PixelShuffle(2), (X,), "torchscript").applied


def test_sentinel():
    @rewrite(torch.channel_shuffle, name=NAME, needed_on=("torchscript",), registry=None)
    def broken(input, groups):
        return catalogue()[NAME].body(input, input.shape[1] // groups)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: torch.channel_shuffle(x, 3), (X,), "torchscript", rewrites=[broken])


def test_still_needed():
    with pytest.raises(CompatError, match="aten::channel_shuffle"):
        assert_same_outputs(lambda x: torch.channel_shuffle(x, 3), (X,), "torchscript", exclude=[NAME])
