import pytest
import torch
from torch import nn

from torch_onnx_compat import Ops, Value, symbolic
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.functional.focus import focus
from torch_onnx_compat.testing import assert_same_outputs

DYNAMIC = {"image": {0: "batch", 2: "height", 3: "width"}}


class Twice(nn.Module):
    """On an argument and on an intermediate value, with the exporters knowing less of the second's shape."""

    def forward(self, image):
        return focus(image), torch.ops.torch_onnx_compat.focus(torch.cat([image, image + 1], 2))


def test_eager_is_yolos():
    x = torch.randn(2, 3, 6, 8)
    slices = [x[..., ::2, ::2], x[..., 1::2, ::2], x[..., ::2, 1::2], x[..., 1::2, 1::2]]
    assert torch.equal(focus(x), torch.cat(slices, 1))


def test_operator_is_well_formed():
    torch.library.opcheck(focus, (torch.randn(2, 3, 6, 8),), test_utils=("test_schema", "test_faketensor"))


@pytest.mark.parametrize("opset", [11, 13, None])
def test_matches(exporter, opset):
    image = torch.randn(2, 3, 6, 8)
    result = assert_same_outputs(Twice(), (image,), exporter, dynamic=DYNAMIC, opset=opset, uses=("focus",))
    assert result.nodes["SpaceToDepth"] == 2
    assert not result.custom_nodes


def test_matches_with_any_number_of_channels(exporter):
    dynamic = {"image": {1: "channels"}}
    result = assert_same_outputs(lambda image: focus(image), (torch.randn(2, 3, 6, 8),), exporter, dynamic=dynamic)
    assert result.nodes["Transpose"] == 2


def test_matches_other_types(exporter):
    image = torch.randn(2, 3, 6, 8)
    assert_same_outputs(lambda image: (focus(image.double()), focus(image.half())), (image,), exporter, uses=("focus",))


def test_sentinel(exporter):
    @symbolic("torch_onnx_compat::focus", name="focus", needed_on=EXPORTERS, registry=None)
    def broken(op: Ops, image: Value) -> Value:
        return op.SpaceToDepth(image, blocksize=2)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(Twice(), (torch.randn(2, 3, 6, 8),), exporter, symbolics=[broken])


def test_still_needed(exporter):
    with pytest.raises(CompatError, match=r"namespace|torch_onnx_compat"):
        assert_same_outputs(Twice(), (torch.randn(2, 3, 6, 8),), exporter, exclude=["focus"])
