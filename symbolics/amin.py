"""aten::amin of everything -> ReduceMin.

Schema: amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor
Source: https://onnx.ai/onnx/operators/onnx__ReduceMin.html
"""

from torch_onnx_compat import Exactness, Ops, Value, symbolic


@symbolic("aten::amin", needed_on=("dynamo",), exactness=Exactness.BITWISE)
def amin(op: Ops, self: Value, dim: list[int] = [], keepdim: bool = False) -> Value:  # noqa: B006
    """Least value of all; stock dynamo's translation asks for axes."""
    if dim:
        return NotImplemented
    return op.ReduceMin(self, keepdims=int(keepdim))
