"""Distances between vectors, and vectors of bounded length.

Math:   a norm of order p is the sum of |d|^p to the power 1 / p; the number of non-zero cells for p = 0, the largest
        magnitude for infinity, and the smallest for minus infinity. A distance is the norm of a difference.
"""

import math

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from torch_onnx_compat import Exactness, decline, decomposition
from torch_onnx_compat.tracing import constant, static_size


def norm(x: Tensor, p: float, *, keepdim: bool = False) -> Tensor:
    """Norm of order p of the last axis."""
    if p == 0:
        return (x != 0).to(x.dtype).sum(-1, keepdim=keepdim)
    if p == 2:
        return (x * x).sum(-1, keepdim=keepdim).sqrt()
    magnitude = x.abs()
    if math.isinf(p):
        return magnitude.amax(-1, keepdim=keepdim) if p > 0 else magnitude.amin(-1, keepdim=keepdim)
    if p == 1:
        return magnitude.sum(-1, keepdim=keepdim)
    return magnitude.pow(p).sum(-1, keepdim=keepdim).pow(1 / p)


@decomposition(torch.dist, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def dist_to_norm(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """Distance of two tensors, over all cells; stock TorchScript has no symbolic for it."""
    return norm((input - other).reshape(-1), p)


@decomposition(functional.pairwise_distance, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def pairwise_distance_to_norm(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """Distances of pairs of points; stock takes odd powers of negative numbers.

    Math: the norm of x1 - x2 + eps.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.pairwise_distance.html
    """
    return norm(x1 - x2 + eps, p, keepdim=keepdim)


@decomposition(torch.cosine_similarity, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def cosine_similarity_to_norm(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Cosines of the angles between vectors; stock TorchScript bounds the product of the norms, not each of them.

    Math:   x1 / max(|x1|, eps) times x2 / max(|x2|, eps), summed.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.cosine_similarity.html
    """
    dtype = torch.promote_types(x1.dtype, x2.dtype)
    first, second = (x.to(dtype) for x in (x1, x2))
    if first.dim() != second.dim() or not _have_same_size(first, second, dim):
        first, second = torch.broadcast_tensors(first, second)
    first, second = (x.movedim(dim, -1) for x in (first, second))
    first, second = (x / norm(x, 2, keepdim=True).clamp(min=eps) for x in (first, second))
    return (first * second).sum(-1)


def _have_same_size(first: Tensor, second: Tensor, dim: int) -> bool:
    """Whether an axis is of one fixed size in both."""
    size = static_size(first, dim)
    return size is not None and size == static_size(second, dim)


_FEW = 25
"""Number of points up to which eager torch takes the differences of all pairs."""


def euclidean_by_products(x1: Tensor, x2: Tensor) -> Tensor:
    """Euclidean distances as sqrt(|a|^2 - 2ab + |b|^2), in one product of matrices as eager torch computes it.

    Args:
        x1: Points (..., P, M).
        x2: Points (..., R, M).
    """
    squares = [(x * x).sum(-1, keepdim=True) for x in (x1, x2)]
    ones = [torch.ones_like(square) for square in squares]
    left = torch.cat((-2 * x1, squares[0], ones[0]), -1)
    right = torch.cat((x2, ones[1], squares[1]), -1)
    return (left @ right.transpose(-2, -1)).clamp(min=0).sqrt()


@decomposition(torch.cdist, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def cdist_to_norm(
    x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary"
) -> Tensor:
    """Distances of each point to each other; stock dynamo refuses it, stock TorchScript errs for p != 2.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.cdist.html; ATen/native/Distance.cpp
    """
    if p == 2 and compute_mode == "use_mm_for_euclid_dist":
        return NotImplemented
    points = [static_size(x, -2) for x in (x1, x2)]
    if p == 2 and not compute_mode.startswith("donot") and any(size is not None and size > _FEW for size in points):
        return euclidean_by_products(x1, x2)
    return norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p)


@decomposition((torch.pdist, functional.pdist), needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def pdist_to_norm(input: Tensor, p: float = 2.0) -> Tensor:
    """Distances between all pairs of a fixed number of points; neither exporter has an operator for it.

    Declines: a varying number of points.

    Math: the distances of the pairs i < j, in the order of i, then of j.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.pdist.html
    """
    points = static_size(input, 0)
    if points is None:
        decline("the number of points must be fixed; take the upper triangle of torch.cdist(x, x) instead")
    first, second = (constant(numbers, input, torch.int64) for numbers in np.triu_indices(points, 1))
    return norm(input.index_select(0, first) - input.index_select(0, second), p)


@decomposition(torch.renorm, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def renorm_to_mul(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """Limits the norms of slices; stock TorchScript has no symbolic for it.

    Math: slices along dim whose norm n exceeds maxnorm are scaled by maxnorm / (n + 1e-7).
    """
    slices = input.transpose(dim, 0)
    norms = norm(slices.reshape(slices.shape[0], -1), p).reshape([-1] + [1] * (input.dim() - 1))
    scale = torch.where(norms > maxnorm, maxnorm / (norms + 1e-7), torch.ones_like(norms))
    return (slices * scale).transpose(dim, 0)
