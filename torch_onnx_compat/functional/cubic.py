"""The kernel of cubic convolution, with which torch resizes images and samples them.

Math:   with the free parameter a, a cell at the distance d, in cells, has the weight (a + 2) d^3 - (a + 3) d^2 + 1 for
        d <= 1, a d^3 - 5 a d^2 + 8 a d - 4 a for 1 < d < 2, and 0 beyond.
Source: ATen/native/UpSample.h (cubic_convolution1, cubic_convolution2);
        https://en.wikipedia.org/wiki/Bicubic_interpolation#Bicubic_convolution_algorithm
"""

from typing import Any

PLAIN = -0.75
"""The free parameter in interpolate and grid_sample without antialiasing."""

ANTIALIASED = -0.5
"""The free parameter in interpolate with antialias=True."""


def inner(distance: Any, a: float) -> Any:
    """Weights of cells at most 1 away.

    Args:
        distance: Tensor or numpy array.
        a: The free parameter.
    """
    return ((a + 2) * distance - (a + 3)) * distance * distance + 1


def outer(distance: Any, a: float) -> Any:
    """Weights of cells from 1 to 2 away.

    Args:
        distance: Tensor or numpy array.
        a: The free parameter.
    """
    return ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
