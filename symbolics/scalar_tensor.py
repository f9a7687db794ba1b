"""aten::scalar_tensor -> Constant of the dtype asked for.

Math:   torch.export makes a Python number beside a float64 tensor scalar_tensor(number, dtype=float64). Torch writes
        that as a float32 constant and a Cast, so that x * 0.1 multiplies by 0.10000000149.
Schema: scalar_tensor(Scalar s, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None,
        bool? pin_memory=None) -> Tensor
Source: https://docs.pytorch.org/docs/stable/generated/torch.scalar_tensor.html
"""

from typing import Any

from torch_onnx_compat import Exactness, Ops, Value, decline, symbolic
from torch_onnx_compat.ops import TORCH_TYPES


@symbolic("aten::scalar_tensor", needed_on=("dynamo",), exactness=Exactness.BITWISE)
def scalar_tensor(op: Ops, s: Value, dtype: Any = None) -> Value:
    """The number as a constant; stock dynamo rounds it to float32 first, also for float64 tensors.

    Declines: a number that is computed in the graph, and a dtype that is not spelt as ONNX spells it.
    """
    number = op.number(s)
    if number is None:
        decline("the number must be known, got a tensor")
    if not isinstance(dtype, int) or int(dtype) not in TORCH_TYPES:
        decline(f"dtype must be one of ONNX's, got {dtype!r}")
    return op.constant(number, TORCH_TYPES[int(dtype)])
