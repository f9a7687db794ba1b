"""Functions with functools.cache or lru_cache: sizes without numbers are keys that they do not find.

What the cached function computes is then computed in the trace, at the sizes of the trace.
"""

from __future__ import annotations

import functools

from torch_onnx_compat.backends.checks import Place, called_names
from torch_onnx_compat.stack import frame_of_model, value_at

_CACHED = type(functools.lru_cache(lambda: None))


def is_for_a_cache() -> bool:
    """Whether the code that hashes a size calls a function that functools caches."""
    frame = frame_of_model()
    if frame is None:
        return False
    return any(isinstance(value_at(name, frame), _CACHED) for name in called_names(Place.of(frame)))
