"""Products of vectors and matrices: sums of products, powers, exponentials, covariances, groups of rows."""

import functools
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from torch_onnx_compat import Declaration, Exactness, Ops, Value, decline, decomposition, symbolic
from torch_onnx_compat.functional.complex import is_complex
from torch_onnx_compat.functional.linear_algebra import identity, inverse, matrix_exp, small_size
from torch_onnx_compat.tracing import constant, static_size

ON_TORCHSCRIPT = Declaration(needed_on=("torchscript",), exactness=Exactness.ROUNDING)
ON_BOTH = Declaration(needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)


# Vectors


@decomposition(torch.inner, **ON_TORCHSCRIPT)
def inner_to_matmul(input: Tensor, other: Tensor) -> Tensor:
    """Inner product of last axes; stock TorchScript has no symbolic for it.

    Math: the products of the last axes, summed.
    """
    if input.dim() == 0 or other.dim() == 0:
        return input * other
    if input.dim() <= 2 and other.dim() <= 2:
        return input @ (other if other.dim() == 1 else other.transpose(0, 1))
    return torch.tensordot(input, other, ([-1], [-1]))


@decomposition(torch.vdot, **ON_TORCHSCRIPT)
def vdot_to_sum(input: Tensor, other: Tensor) -> Tensor:
    """Product of two vectors; stock TorchScript has no symbolic for it.

    Declines: complex vectors.

    Math: without an imaginary part there is nothing to conjugate, so vdot is dot.
    """
    if is_complex(input) or is_complex(other):
        decline("the vectors must be real; write (input.conj() * other).sum()")
    return (input * other).sum()


@decomposition(torch.linalg.vecdot, **ON_TORCHSCRIPT)
def vecdot_to_sum(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """Dot products along an axis; stock TorchScript has no symbolic for them."""
    return (x * y).sum(dim)


@decomposition((torch.outer, torch.ger), **ON_TORCHSCRIPT)
def outer_to_mul(input: Tensor, vec2: Tensor) -> Tensor:
    """Products of each two elements; stock TorchScript's Einsum has one type, and takes no small integers."""
    return input.unsqueeze(1) * vec2


@decomposition(torch.einsum, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def einsum_of_one_type(equation: Any, *operands: Any) -> Tensor:
    """Einstein sum of tensors of several types, which eager torch promotes; ONNX's Einsum and MatMul have one type.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.einsum.html
    """
    is_list = len(operands) == 1 and isinstance(operands[0], (list, tuple))
    tensors = list(operands[0] if is_list else operands)
    if not isinstance(equation, str) or len({tensor.dtype for tensor in tensors}) < 2:
        return NotImplemented
    dtype = functools.reduce(torch.promote_types, (tensor.dtype for tensor in tensors))
    return torch.einsum(equation, *(tensor.to(dtype) for tensor in tensors))


@decomposition(functional.bilinear, **ON_TORCHSCRIPT)
def bilinear_to_matmul(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Bilinear form of two vectors; stock TorchScript has no symbolic for it.

    Math: y[o] = sum over i, j of x1[i] weight[o, i, j] x2[j], plus a bias.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.bilinear.html
    """
    turned = torch.matmul(input1.unsqueeze(-2).unsqueeze(-2), weight).squeeze(-2)
    result = torch.matmul(turned, input2.unsqueeze(-1)).squeeze(-1)
    return result if bias is None else result + bias


# Products of small integers, which ONNX's MatMul does not take; modulo 2^16 or 2^8 they are those of int32

SMALL = (torch.int8, torch.int16, torch.uint8)
OF_SMALL = Declaration(needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)


@decomposition((torch.matmul, torch.mm, torch.bmm, torch.mv, torch.dot, Tensor.__matmul__), **OF_SMALL)
def matmul_of_small_integers(input: Tensor, other: Any = None, **names: Tensor) -> Tensor:
    """Product of int8, int16 or uint8, in int32."""
    other = next(iter(names.values())) if other is None else other
    return NotImplemented if input.dtype not in SMALL else _whole_product(input, other)


def _whole_product(x: Tensor, y: Tensor) -> Tensor:
    if x.dtype not in SMALL:
        return torch.matmul(x, y)
    return torch.matmul(x.to(torch.int32), y.to(torch.int32)).to(x.dtype)


# A product that is added


def add_product(input: Tensor, product: Tensor, beta: float, alpha: float) -> Tensor:
    """The sum beta * input + alpha * product; beta = 0 drops the input, its NaN included."""
    scaled = product if alpha == 1 else product * alpha
    if beta == 0:
        return scaled
    return (input if beta == 1 else input * beta) + scaled


@decomposition(torch.addmm, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def addmm_of_integers(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Product of matrices of integers, added; onnxruntime's Gemm takes floating-point numbers only."""
    if input.is_floating_point():
        return NotImplemented
    return add_product(input, _whole_product(mat1, mat2), beta, alpha)


@decomposition(torch.baddbmm, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def baddbmm_of_nothing(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Products of matrices; with beta = 0 torch does not read what they are added to, of which stock keeps NaN."""
    return NotImplemented if beta != 0 else add_product(input, torch.bmm(batch1, batch2), beta, alpha)


@decomposition(torch.addbmm, **ON_BOTH)
def addbmm_to_matmul(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Product of batches of matrices, summed, added; stock TorchScript has no symbolic, stock dynamo keeps NaN."""
    return add_product(input, torch.bmm(batch1, batch2).sum(0), beta, alpha)


@decomposition(torch.addmv, **ON_BOTH)
def addmv_to_matmul(input: Tensor, mat: Tensor, vec: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Product of a matrix and a vector, added; stock TorchScript has no symbolic, stock dynamo keeps NaN."""
    return add_product(input, torch.mv(mat, vec), beta, alpha)


@decomposition(torch.addr, **ON_TORCHSCRIPT)
def addr_to_mul(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Product of two vectors, outer, added; stock TorchScript has no symbolic for it."""
    return add_product(input, vec1.unsqueeze(1) * vec2, beta, alpha)


# Matrices


@decomposition(torch.kron, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def kron_to_mul(input: Tensor, other: Tensor) -> Tensor:
    """Kronecker product; stock TorchScript has no symbolic for it, stock dynamo fixes the sizes.

    Math: with axes of sizes a and b side by side, cell (i, j) of each pair of axes is x[i] y[j].
    """
    rank = max(input.dim(), other.dim())
    x = input.reshape([1] * (rank - input.dim()) + list(input.shape))
    y = other.reshape([1] * (rank - other.dim()) + list(other.shape))
    sizes = [x.shape[axis] * y.shape[axis] for axis in range(rank)]
    for axis in range(rank):
        x, y = x.unsqueeze(2 * axis + 1), y.unsqueeze(2 * axis)
    return (x * y).reshape(sizes)


@decomposition((torch.linalg.multi_dot, torch.chain_matmul), **ON_BOTH)
def multi_dot_to_matmul(tensors: Sequence[Tensor] | Tensor, *more: Tensor) -> Tensor:
    """Product of several matrices; stock TorchScript lacks both functions, dynamo fixes sizes to find the best order.

    Math: products of matrices are associative; where the last factor is a vector, the first product is the one with it.
    """
    factors = [tensors, *more] if isinstance(tensors, Tensor) else [*tensors, *more]
    if factors[-1].dim() == 1:
        return functools.reduce(lambda right, left: left @ right, reversed(factors))
    return functools.reduce(torch.matmul, factors)


@decomposition((torch.linalg.matrix_power, torch.matrix_power), **ON_BOTH)
def matrix_power_to_matmul(A: Any = None, n: int = 1, *, input: Any = None) -> Tensor:  # noqa: N803
    """Whole powers of matrices; neither exporter has the operator.

    Declines: power 0 of matrices of no fixed size; negative powers of such, or of more than 8 rows.

    Math: squaring and multiplying by the digits of the exponent; a negative power is one of the inverse.
    """
    matrix = input if A is None else A
    if n == 0:
        size = static_size(matrix, -1)
        if size is None:
            decline("the size of the matrix must be fixed for power 0")
        return torch.zeros_like(matrix) + identity(size, matrix)
    if n == 1:
        return matrix.clone()
    square = inverse(matrix, small_size(matrix)) if n < 0 else matrix
    product: Any = None
    for position, digit in enumerate(f"{abs(n):b}"[::-1]):
        if position:
            square = square @ square
        if digit == "1":
            product = square if product is None else square @ product
    return product


@decomposition(
    (torch.linalg.matrix_exp, torch.matrix_exp),
    needed_on=("torchscript", "dynamo"),
    exactness=Exactness.APPROXIMATE,
    error=1e-4,
)
def matrix_exp_to_powers(A: Any = None, *, input: Any = None) -> Tensor:  # noqa: N803
    """Exponential of matrices whose norm is at most 500; relative to the largest element of the result.

    Declines: matrices of no fixed size.

    Math: torch_onnx_compat.functional.linear_algebra.matrix_exp. torch chooses among polynomials by the matrix's norm.
    """
    matrix = input if A is None else A
    size = static_size(matrix, -1)
    if size is None:
        decline("the size of the matrix must be fixed")
    return matrix_exp(matrix, size)


# Covariances


@decomposition(torch.cov, **ON_BOTH)
def cov_to_matmul(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """Covariances of the rows; neither exporter takes it.

    Declines: an input of no axes, and a varying number of rows.

    Math: with weights w = f a: mean = sum(w x) / sum(w), and d (w d)^T / max(0, sum(w) - correction * sum(w a) /
          sum(w)).
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


@decomposition(torch.corrcoef, **ON_BOTH)
def corrcoef_to_matmul(input: Tensor) -> Tensor:
    """Correlations of the rows; neither exporter takes it.

    Declines: a single row, and a varying number of rows.

    Math: with d the deviations from the rows' means and s the roots of their sums of squares, d d^T / s / s^T, limited
          to -1..1.
    """
    if input.dim() != 2 or static_size(input, 0) in (None, 1):
        decline("the input must have several rows, of fixed number: of a single one torch makes a number")
    deviations = input - input.mean(1, keepdim=True)
    scale = (deviations * deviations).sum(1, keepdim=True).sqrt()
    products = deviations @ deviations.transpose(0, 1)
    return (products / scale / scale.transpose(0, 1)).clamp(-1, 1)


# Whole powers of elements, side by side: torch multiplies one column by the next, Pow rounds once


def powers(x: Tensor, count: int | None, *, increasing: bool) -> Tensor:
    """Powers 0 to count - 1 of (..., n), along a new last axis.

    Args:
        x: The argument of the rewrite's body; whole numbers become int64.
        count: How many; None means n.
        increasing: Whether power 0 comes first.
    """
    base = x if x.dtype.is_floating_point else x.to(torch.int64)
    count = static_size(x, -1) if count is None else count
    if type(count) is int:
        exponents = constant(range(count)[:: 1 if increasing else -1], base)
    else:
        length = x.shape[-1] if count is None else count
        exponents = torch.arange(length, device=x.device).to(base.dtype)
        exponents = exponents if increasing else length - 1 - exponents
    return torch.pow(base.unsqueeze(-1), exponents)


@decomposition(torch.vander, **ON_BOTH)
def vander_to_pow(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:  # noqa: N803
    """Powers of a vector's elements; stock TorchScript lacks it, dynamo fixes its length.

    Math: column j holds the powers N - 1 - j, or j if increasing.
    """
    return powers(x, N, increasing=increasing)


@decomposition(torch.linalg.vander, **ON_BOTH)
def linalg_vander_to_pow(x: Tensor, *, N: int | None = None) -> Tensor:  # noqa: N803
    """Powers of the elements of a batch of vectors; stock TorchScript lacks it, dynamo fixes its length.

    Math: column j holds the powers j.
    """
    return powers(x, N, increasing=True)


# Groups of rows, each by a matrix of its own, as mixtures of experts have them


def grouped_products(op: Ops, x: Value, weight: Value, offsets: Value) -> Value:
    """X (S, K) by weight (G, K, N) -> (S, N), zero in the rows after the last group; offsets (G,), ascending.

    One product for each group: as much work as torch does, whatever the number of groups. A group may be empty.

    Declines: a number of groups that varies.

    Math: rows offsets[g - 1] <= s < offsets[g] of x, with offsets[-1] = 0, are multiplied by weight[g].
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


@symbolic("aten::_grouped_mm", **ON_BOTH)
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


@symbolic("transformers::grouped_mm_fallback", **ON_BOTH)
def grouped_mm_fallback(op: Ops, input: Value, weight: Value, offs: Value) -> Value:
    """Multiplies groups of rows by a matrix each: transformers' own operator, for torch.export and old torch.

    Declines: a number of groups that varies.

    Schema: grouped_mm_fallback(Tensor input, Tensor weight, Tensor offs) -> Tensor
    Source: https://github.com/huggingface/transformers/blob/main/src/transformers/integrations/moe.py
    """
    return grouped_products(op, input, weight, offs)
