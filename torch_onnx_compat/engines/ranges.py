"""The shapes that an engine is built for: of each input the smallest, the usual and the largest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy.typing as npt

Shape = list[int]
Ranges = dict[str, list[Shape]]
"""By input: the smallest, the usual and the largest shape."""


def ranges_of_feeds(feeds: Mapping[str, npt.NDArray[Any]]) -> Ranges:
    """Ranges of one shape each."""
    return {name: [list(array.shape)] * 3 for name, array in feeds.items()}
