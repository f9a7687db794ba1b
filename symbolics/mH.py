"""aten::mH of real matrices -> Transpose.

Math:   the last two axes change places; a real number is its own conjugate.
Schema: mH(Tensor self) -> Tensor
Source: https://docs.pytorch.org/docs/stable/tensors.html#torch.Tensor.mH
"""
# ruff: noqa: N999

from torch_onnx_compat import Exactness, Ops, Value, decline, symbolic


@symbolic("aten::mH", needed_on=("torchscript",), exactness=Exactness.BITWISE)
def mH(op: Ops, self: Value) -> Value:
    """Adjoint matrices, for which stock TorchScript has no symbolic.

    Declines: a tensor of unknown rank.
    """
    rank = op.rank(self)
    if rank is None:
        decline("the rank of the tensor must be known")
    return op.Transpose(self, perm=[*range(rank - 2), rank - 1, rank - 2])
