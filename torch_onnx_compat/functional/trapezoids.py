"""The areas of trapezoids that the trapezoidal rule adds up.

Math:   between two neighbours (y[i] + y[i + 1]) / 2 * (x[i + 1] - x[i]).
Source: https://docs.pytorch.org/docs/stable/generated/torch.trapezoid.html
"""

from __future__ import annotations

from torch import Tensor

from torch_onnx_compat import decline


def trapezoids(y: Tensor, x: Tensor | None, dx: float, dim: int) -> Tensor:
    """Area between each two neighbours of an axis.

    Args:
        y: Heights.
        x: Abscissae of one axis, (n,), or of every height; None if they are `dx` apart.
        dx: Distance of the abscissae.
        dim: The axis.
    """
    heights = _ahead(y, dim) + _behind(y, dim)
    if x is None:
        return heights * (dx / 2)
    if x.dim() == 1:
        x = x.reshape([-1] + [1] * (y.dim() - 1 - dim % y.dim()))
    elif x.dim() != y.dim():
        decline(f"x must have 1 or {y.dim()} axes, got {x.dim()}")
    dim = dim % y.dim() - y.dim()
    result: Tensor = heights * (_ahead(x, dim) - _behind(x, dim)) / 2
    return result


def _ahead(x: Tensor, dim: int) -> Tensor:
    return x.narrow(dim, 1, x.shape[dim] - 1)


def _behind(x: Tensor, dim: int) -> Tensor:
    return x.narrow(dim, 0, x.shape[dim] - 1)
