"""Distances and norms of every order, in rows; a product for many points; what is declined."""

import pytest
import torch
from torch.nn import functional as F
from torch_onnx_compat.symbolics.distances import norm, pdist_to_norm, renorm_to_mul

from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.testing import Example, assert_same_outputs

X = torch.tensor([[1.5, -2.0, 0.0, 0.25], [-0.5, 7.0, -1.0, 3.0]])
Y = torch.tensor([[2.5, 1.0, -0.5, 4.0], [1.0, -3.0, 0.75, 2.0]])
INF = float("inf")

EXAMPLES = [
    Example(
        "cosine_similarity_to_norm",
        lambda x, y: (
            *(F.cosine_similarity(x[0], y[0], 0), F.cosine_similarity(x[0].double(), y[1] * 0, -1)),
            *(F.cosine_similarity(x, y, eps=4.0), F.cosine_similarity(x, y[:1], 0), F.cosine_similarity(x, y[:, :1])),
            *(F.cosine_similarity(x, y[0], -1), F.cosine_similarity(x[None], y[:, None], -1, eps=0.5)),
        ),
        (X, Y),
        broken=lambda x1, x2, dim=1, eps=1e-8: (x1 * x2).sum(dim) / (norm(x1, 2) * norm(x2, 2)).clamp(min=eps),
    ),
    Example(
        "dist_to_norm",
        lambda x, y: (torch.dist(x, y), x.dist(y, 1), *(torch.dist(x, y[:, :1], p) for p in (3, INF, -INF))),
        (X, Y),
        broken=lambda input, other, p=2: (input - other).reshape(-1).pow(p).sum().pow(1 / p),
    ),
    Example(
        "pairwise_distance_to_norm",
        lambda x, y: (
            *(F.pairwise_distance(x, y, p=p) for p in (1, 2, 3, INF, -INF)),
            torch.nn.PairwiseDistance(1, keepdim=True)(x, y),
        ),
        (X, Y),
        broken=lambda x1, x2, p=2.0, eps=1e-6, keepdim=False: norm(x1 - x2 + eps, p),
    ),
    Example(
        "cdist_to_norm",
        lambda x: (
            *(torch.cdist(x, x[:, :1] + 0.5, p=p) for p in (0.0, 1.0, 2.0, 3.5, INF)),
            torch.cdist(x[0], x[1]),
            torch.cdist(x, x),
        ),
        (torch.tensor([[[1.5, -2.0, 0.0], [1.5, 1.0, 2.0]], [[0.5, 4.0, -1.0], [3.0, 3.0, 3.5]]]),),
        broken=lambda x1, x2, p=2.0, compute_mode="": norm(x2.unsqueeze(-2) - x1.unsqueeze(-3), p),
    ),
    Example(
        "pdist_to_norm",
        lambda x: (F.pdist(x[0]), torch.pdist(x[0], 1)),
        (torch.randn(2, 5, 3),),
        broken=lambda input, p=2.0: pdist_to_norm(input, p).flip(0),
    ),
    Example(
        "renorm_to_mul",
        lambda x, y: (torch.renorm(x, 2, 0, 3.0), y.renorm(p=1, dim=1, maxnorm=2.5), torch.renorm(y, 3, -1, 0.7)),
        (X, torch.randn(2, 3, 4)),
        broken=lambda input, p, dim, maxnorm: renorm_to_mul(input, p, 0, maxnorm),
    ),
]


def test_distances_of_many_points_are_one_product(exporter):
    points = torch.randn(2, 30, 3)
    result = assert_same_outputs(
        lambda x: torch.cdist(x, x + 4), points, exporter, dynamic="batch", uses=("cdist_to_norm",)
    )
    assert result.nodes["MatMul"] == 1


def test_pdist_declines_varying_numbers_of_points(exporter):
    with pytest.raises(CompatError, match="pdist"):
        assert_same_outputs(lambda x: torch.pdist(x), torch.randn(4, 3), exporter, dynamic="batch")


@pytest.mark.parametrize("points", [0, 1, 2])
def test_pdist_of_few_points_equals_eager(points):
    x = torch.randn(points, 3)
    torch.testing.assert_close(pdist_to_norm(x), torch.pdist(x))
