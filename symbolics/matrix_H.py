"""aten::matrix_H of real matrices -> Transpose.

Math:   the last two axes change places; a real number is its own conjugate.
Schema: matrix_H(Tensor self) -> Tensor
Source: https://docs.pytorch.org/docs/stable/tensors.html#torch.Tensor.H
"""
# ruff: noqa: N999

from torch_onnx_compat import Exactness, Ops, Value, decline, symbolic


@symbolic("aten::matrix_H", needed_on=("torchscript",), exactness=Exactness.BITWISE)
def matrix_H(op: Ops, self: Value) -> Value:
    """Adjoint matrix, for which stock TorchScript has no symbolic.

    Declines: a tensor of unknown rank.
    """
    rank = op.rank(self)
    if rank is None:
        decline("the rank of the tensor must be known")
    return op.Transpose(self, perm=[*range(rank - 2), rank - 1, rank - 2])
