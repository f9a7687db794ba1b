"""aten::mT -> Transpose.

Math:   the last two axes change places.
Schema: mT(Tensor self) -> Tensor
Source: https://docs.pytorch.org/docs/stable/tensors.html#torch.Tensor.mT
"""
# ruff: noqa: N999

from torch_onnx_compat import Exactness, Ops, Value, decline, symbolic


@symbolic("aten::mT", needed_on=("torchscript",), exactness=Exactness.BITWISE)
def mT(op: Ops, self: Value) -> Value:
    """Transposed matrices; stock TorchScript has no symbolic for the attribute.

    Declines: a tensor of unknown rank.
    """
    rank = op.rank(self)
    if rank is None:
        decline("the rank of the tensor must be known")
    return op.Transpose(self, perm=[*range(rank - 2), rank - 1, rank - 2])
