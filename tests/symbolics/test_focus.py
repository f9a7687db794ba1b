"""Focus, in rows; against YOLO's slices; its nodes."""

import pytest
import torch
from torch import nn

from torch_onnx_compat.functional.focus import focus
from torch_onnx_compat.testing import Example, assert_same_outputs

IMAGE = torch.randn(2, 3, 6, 8)
DYNAMIC = {"image": {0: "batch", 2: "height", 3: "width"}}


class Twice(nn.Module):
    """On an argument and on an intermediate value, with the exporters knowing less of the second's shape."""

    def forward(self, image):
        return focus(image), torch.ops.torch_onnx_compat.focus(torch.cat([image, image + 1], 2))


def in_rows(op, image):
    """SpaceToDepth as it is, whose cells stand row by row."""
    return op.SpaceToDepth(image, blocksize=2)


EXAMPLES = [
    Example("focus", Twice(), (IMAGE,), broken=in_rows, dynamic=DYNAMIC),
    Example(
        "focus", lambda image: (focus(image.double()), focus(image.half())), (IMAGE,), broken=in_rows, dynamic=None
    ),
]


def test_eager_is_yolos():
    slices = [IMAGE[..., ::2, ::2], IMAGE[..., 1::2, ::2], IMAGE[..., ::2, 1::2], IMAGE[..., 1::2, 1::2]]
    assert torch.equal(focus(IMAGE), torch.cat(slices, 1))


def test_operator_is_well_formed():
    torch.library.opcheck(focus, (IMAGE,), test_utils=("test_schema", "test_faketensor"))


@pytest.mark.parametrize("opset", [11, 13, None])
def test_takes_one_operator_each(exporter, opset):
    result = assert_same_outputs(Twice(), IMAGE, exporter, dynamic=DYNAMIC, opset=opset, uses=("focus",))
    assert result.nodes["SpaceToDepth"] == 2
    assert not result.custom_nodes


def test_transposes_any_number_of_channels(exporter):
    dynamic = {"image": {1: "channels"}}
    result = assert_same_outputs(lambda image: focus(image), IMAGE, exporter, dynamic=dynamic)
    assert result.nodes["Transpose"] == 2
