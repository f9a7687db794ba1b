import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "chunk_of_quantized"
X = torch.randn(2, 6, 4, generator=torch.Generator().manual_seed(0))
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")


def model(x):
    q = torch.quantize_per_tensor(x, 0.02, 64, torch.quint8)
    first, second = q.chunk(2, dim=1)
    three = torch.chunk(torch.cat((second, first), 1), 4, -1)
    return first.dequantize(), second.dequantize(), three[3].dequantize()


def test_matches():
    result = assert_same_outputs(model, X, "torchscript", dynamic={"x": {0: "batch"}}, uses=(NAME,))
    assert result.nodes["QuantizeLinear"]


def test_other_tensors_are_left_alone():
    result = assert_same_outputs(lambda x: x.chunk(2, 1)[1], X, "torchscript")
    assert NAME not in {note.entry for note in result.applied}


def test_sentinel():
    @rewrite(torch.chunk, name=NAME, needed_on=("torchscript",), registry=None)
    def broken(input, chunks, dim=0):
        if not input.is_quantized:
            return NotImplemented
        pieces = input.dequantize().chunk(chunks, dim)
        return tuple(torch.quantize_per_tensor(p, input.q_scale(), 0, input.dtype) for p in pieces)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(model, X, "torchscript", rewrites=[broken])


def test_still_needed():
    with pytest.raises(CompatError, match="ONNX symbolic expected the output of"):
        assert_same_outputs(model, X, "torchscript", exclude=[NAME])
