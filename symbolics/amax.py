"""aten::amax of everything -> ReduceMax.

Schema: amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor
Source: https://onnx.ai/onnx/operators/onnx__ReduceMax.html
"""

from torch_onnx_compat import Exactness, Ops, Value, symbolic


@symbolic("aten::amax", needed_on=("dynamo",), exactness=Exactness.BITWISE)
def amax(op: Ops, self: Value, dim: list[int] = [], keepdim: bool = False) -> Value:  # noqa: B006
    """Greatest value of all; stock dynamo's translation asks for axes."""
    if dim:
        return NotImplemented
    return op.ReduceMax(self, keepdims=int(keepdim))
