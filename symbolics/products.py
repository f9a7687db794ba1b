"""Products of matrices: powers, exponentials, covariances, groups.

Whole powers of elements, side by side.

Math:   torch multiplies one column by the next; Pow rounds once.
Source: https://docs.pytorch.org/docs/stable/generated/torch.vander.html

Matrix products of groups of rows, as mixtures of experts take them.

Math:   rows offsets[g - 1] <= s < offsets[g] of x, with offsets[-1] = 0, are multiplied by weight[g].
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.grouped_mm.html
"""

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torch_onnx_compat import Exactness, Ops, Value, decline, decomposition, symbolic
from torch_onnx_compat.functional.complex import is_complex
from torch_onnx_compat.functional.linear_algebra import identity, inverse, matrix_exp, small_size
from torch_onnx_compat.tracing import constant, static_size


def powers(x: Tensor, count: Any, *, increasing: bool) -> Tensor:
    """Powers 0 to count - 1 of (..., n), along a new last axis.

    Args:
        x: Numbers; whole ones become int64.
        count: How many; a number, or a size that varies.
        increasing: Whether power 0 comes first.
    """
    base = x if x.dtype.is_floating_point else x.to(torch.int64)
    if type(count) is int:
        exponents = constant(np.arange(count) if increasing else np.arange(count)[::-1].copy(), base)
    else:
        exponents = torch.arange(count, device=x.device).to(base.dtype)
        exponents = exponents if increasing else count - 1 - exponents
    return torch.pow(base.unsqueeze(-1), exponents)


def grouped_products(op: Ops, x: Value, weight: Value, offsets: Value) -> Value:
    """X (S, K) by weight (G, K, N) -> (S, N), zero in the rows after the last group; offsets (G,), ascending.

    One product for each group: as much work as torch does, whatever the number of groups. A group may be empty.

    Declines: a number of groups that varies.
    """
    shape = op.shape(weight)
    if shape is None or shape[0] is None:
        decline("the number of groups must be fixed")
    ends = [op.constant([0], torch.int64)]
    every = op.cast(offsets, torch.int64)
    products = []
    for group in range(shape[0]):
        ends.append(op.Gather(every, [group], axis=0))
        rows = op.Slice(x, ends[-2], ends[-1], [0])
        products.append(op.MatMul(rows, op.Gather(weight, op.constant(group, torch.int64), axis=0)))
    rest = op.Sub(op.Slice(op.Shape(x), [0], [1]), ends[-1])
    return op.Pad(op.Concat(*products, axis=0), op.Concat([0, 0], rest, [0], axis=0))


@decomposition(torch.inner, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def inner_to_matmul(input: Tensor, other: Tensor) -> Tensor:
    """Inner product of last axes; stock TorchScript has no symbolic for it.

    Math: the products of the last axes, summed.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.inner.html
    """
    if input.dim() == 0 or other.dim() == 0:
        return input * other
    if input.dim() <= 2 and other.dim() <= 2:
        return input @ (other if other.dim() == 1 else other.transpose(0, 1))
    result: Tensor = torch.tensordot(input, other, ([-1], [-1]))
    return result


@decomposition(torch.vdot, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def vdot_to_sum(input: Tensor, other: Tensor) -> Tensor:
    """Product of two vectors; stock TorchScript has no symbolic for it.

    Declines: complex vectors.

    Math: without an imaginary part there is nothing to conjugate, so vdot is dot.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.vdot.html
    """
    if is_complex(input) or is_complex(other):
        decline("the vectors must be real; write (input.conj() * other).sum()")
    return (input * other).sum()


@decomposition(torch.linalg.vecdot, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def vecdot_to_sum(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """Dot products along an axis; stock TorchScript has no symbolic for them.

    Math: by definition.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.vecdot.html
    """
    return (x * y).sum(dim)


@decomposition(torch.addbmm, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def addbmm_to_matmul(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Product of batches of matrices, summed, added; stock TorchScript has no symbolic for it.

    Math: by definition; beta = 0 drops the input, NaN and all.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.addbmm.html
    """
    product = torch.bmm(batch1, batch2).sum(0)
    scaled = product if alpha == 1 else product * alpha
    if beta == 0:
        return scaled
    return (input if beta == 1 else input * beta) + scaled


@decomposition(torch.addmv, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def addmv_to_matmul(input: Tensor, mat: Tensor, vec: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Product of a matrix and a vector, added; stock TorchScript has no symbolic for it.

    Math: by definition; beta = 0 drops the input, NaN and all.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.addmv.html
    """
    product = torch.mv(mat, vec)
    scaled = product if alpha == 1 else product * alpha
    if beta == 0:
        return scaled
    return (input if beta == 1 else input * beta) + scaled


@decomposition(torch.addr, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def addr_to_mul(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Product of two vectors, outer, added; stock TorchScript has no symbolic for it.

    Math: by definition; beta = 0 drops the input, NaN and all.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.addr.html
    """
    product = vec1.unsqueeze(1) * vec2
    scaled = product if alpha == 1 else product * alpha
    if beta == 0:
        return scaled
    return (input if beta == 1 else input * beta) + scaled


@decomposition(torch.kron, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def kron_to_mul(input: Tensor, other: Tensor) -> Tensor:
    """Kronecker product; stock TorchScript has no symbolic for it, stock dynamo fixes the sizes.

    Math: with axes of sizes a and b side by side, cell (i, j) of each pair of axes is x[i] y[j].
    Source: https://docs.pytorch.org/docs/stable/generated/torch.kron.html
    """
    rank = max(input.dim(), other.dim())
    x = input.reshape([1] * (rank - input.dim()) + list(input.shape))
    y = other.reshape([1] * (rank - other.dim()) + list(other.shape))
    sizes = [x.shape[axis] * y.shape[axis] for axis in range(rank)]
    for axis in range(rank):
        x, y = x.unsqueeze(2 * axis + 1), y.unsqueeze(2 * axis)
    return (x * y).reshape(sizes)


@decomposition(
    (torch.linalg.multi_dot, torch.chain_matmul), needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING
)
def multi_dot_to_matmul(tensors: Sequence[Tensor] | Tensor, *more: Tensor) -> Tensor:
    """Product of several matrices; stock TorchScript lacks both functions, dynamo fixes sizes to find the best order.

    Math: products of matrices are associative; where the last factor is a vector, the first product is the one with it.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.multi_dot.html
    """
    factors = [tensors, *more] if isinstance(tensors, Tensor) else [*tensors, *more]
    if factors[-1].dim() == 1:
        return functools.reduce(lambda right, left: left @ right, reversed(factors))
    return functools.reduce(torch.matmul, factors)


@decomposition(
    (torch.linalg.matrix_power, torch.matrix_power),
    needed_on=("torchscript", "dynamo"),
    exactness=Exactness.ROUNDING,
)
def matrix_power_to_matmul(
    A: Tensor | None = None,  # noqa: N803
    n: int = 1,
    *,
    input: Tensor | None = None,
) -> Tensor:
    """Whole powers of matrices; neither exporter has the operator.

    Declines: power 0 of matrices of no fixed size; negative powers of such, or of more than 8 rows.

    Math: squaring and multiplying by the digits of the exponent; a negative power is one of the inverse.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.matrix_power.html
    """
    matrix = input if A is None else A
    assert matrix is not None
    if n == 0:
        size = static_size(matrix, -1)
        if size is None:
            decline("the size of the matrix must be fixed for power 0")
        return torch.zeros_like(matrix) + identity(size, matrix)
    square = inverse(matrix, small_size(matrix)) if n < 0 else matrix
    digits = f"{abs(n):b}"[::-1]
    product = None
    for position, digit in enumerate(digits):
        if digit == "1":
            product = square if product is None else square @ product
        if position + 1 < len(digits):
            square = square @ square
    assert product is not None
    return product.clone() if n == 1 else product


@decomposition(
    (torch.linalg.matrix_exp, torch.matrix_exp),
    needed_on=("torchscript", "dynamo"),
    exactness=Exactness.APPROXIMATE,
    error=1e-4,
)
def matrix_exp_to_powers(A: Tensor | None = None, *, input: Tensor | None = None) -> Tensor:  # noqa: N803
    """Exponential of matrices whose norm is at most 500; relative to the largest element of the result.

    Declines: matrices of no fixed size.

    Math: torch_onnx_compat.functional.linear_algebra.matrix_exp. torch chooses among polynomials by the matrix's norm.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.matrix_exp.html
    """
    matrix = input if A is None else A
    assert matrix is not None
    size = static_size(matrix, -1)
    if size is None:
        decline("the size of the matrix must be fixed")
    return matrix_exp(matrix, size)


@decomposition(torch.cov, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def cov_to_matmul(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """Covariances of the rows; neither exporter takes it.

    Declines: an input of no axes, and a varying number of rows.

    Math: with weights w = f a: mean = sum(w x) / sum(w), and d (w d)^T / max(0, sum(w) - correction * sum(w a) /
          sum(w)).
    Source: https://docs.pytorch.org/docs/stable/generated/torch.cov.html
    """
    if input.dim() not in (1, 2):
        decline(f"the input must have 1 or 2 axes, got {input.dim()}")
    if input.dim() == 2 and static_size(input, 0) is None:
        decline("the number of rows must be fixed: of a single row torch makes a number, of more a matrix")
    x = input.unsqueeze(0) if input.dim() == 1 else input
    x = x if x.is_floating_point() else x.to(torch.get_default_dtype())
    given = [w for w in (fweights, aweights) if w is not None]
    weights = math.prod((w.to(x.dtype) for w in given), start=torch.ones_like(x[0]))
    total = weights.sum()
    lost = total / total if aweights is None else (weights * aweights.to(x.dtype)).sum() / total
    deviations = x - (x * weights).sum(1, keepdim=True) / total
    products = (deviations * weights if given else deviations) @ deviations.transpose(0, 1)
    result = products / (total - correction * lost).clamp(min=0)
    return result.reshape(()) if input.dim() == 1 or static_size(input, 0) == 1 else result


@decomposition(torch.corrcoef, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def corrcoef_to_matmul(input: Tensor) -> Tensor:
    """Correlations of the rows; neither exporter takes it.

    Declines: a single row, and a varying number of rows.

    Math: with d the deviations from the rows' means and s the roots of their sums of squares, d d^T / s / s^T, limited
          to -1..1.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.corrcoef.html
    """
    if input.dim() != 2 or static_size(input, 0) in (None, 1):
        decline("the input must have several rows, of fixed number: of a single one torch makes a number")
    deviations = input - input.mean(1, keepdim=True)
    scale = (deviations * deviations).sum(1, keepdim=True).sqrt()
    products = deviations @ deviations.transpose(0, 1)
    return (products / scale / scale.transpose(0, 1)).clamp(-1, 1)


@decomposition(torch.vander, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def vander_to_pow(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:  # noqa: N803
    """Powers of a vector's elements; stock TorchScript lacks it, dynamo fixes its length.

    Math: column j holds the powers N - 1 - j, or j if increasing.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.vander.html
    """
    count = static_size(x, 0) if N is None else N
    return powers(x, x.shape[0] if count is None else count, increasing=increasing)


@decomposition(torch.linalg.vander, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def linalg_vander_to_pow(x: Tensor, *, N: int | None = None) -> Tensor:  # noqa: N803
    """Powers of the elements of a batch of vectors; stock TorchScript lacks it, dynamo fixes its length.

    Math: column j holds the powers j.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.vander.html
    """
    count = static_size(x, -1) if N is None else N
    return powers(x, x.shape[-1] if count is None else count, increasing=True)


@symbolic("aten::_grouped_mm", needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def grouped_mm(
    op: Ops,
    self: Value,
    mat2: Value,
    offs: Value | None = None,
    bias: Value | None = None,
    out_dtype: int | None = None,
) -> Value:
    """Multiplies groups of rows by a matrix each, as mixtures of experts do.

    Declines: groups of columns or of the axis that is summed; another dtype for the result; a number of groups that
    varies. (torch itself takes no bias.)

    Schema: _grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? out_dtype=None) ->
            Tensor
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.grouped_mm.html
    """
    if op.rank(self) == op.rank(mat2) == 3 and offs is None:
        return op.MatMul(self, mat2)
    if op.rank(self) != 2 or op.rank(mat2) != 3 or offs is None:
        decline("groups must be of rows: an operand (S, K) by one (G, K, N), with offsets")
    if out_dtype is not None:
        decline("out_dtype must be left out")
    return grouped_products(op, self, mat2, offs)


@symbolic("transformers::grouped_mm_fallback", needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def grouped_mm_fallback(op: Ops, input: Value, weight: Value, offs: Value) -> Value:
    """What transformers' mixtures of experts call instead of torch's grouped_mm, under torch.export and on old torch.

    Declines: a number of groups that varies.

    Schema: grouped_mm_fallback(Tensor input, Tensor weight, Tensor offs) -> Tensor
    Source: https://github.com/huggingface/transformers/blob/main/src/transformers/integrations/moe.py
    """
    return grouped_products(op, input, weight, offs)
