"""A plugin that claims an operator of the built-in catalogue.

Source: none.
"""

from torch_onnx_compat import Ops, Value, symbolic


@symbolic("aten::remainder", needed_on=("torchscript",))
def acme_remainder(op: Ops, self: Value, other: Value) -> Value:
    """Computes something else."""
    return op.Mod(self, other)
