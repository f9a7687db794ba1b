"""Functions with functools.cache or lru_cache: sizes without numbers are keys that they do not find.

What the cached function computes is then computed in the trace, at the sizes of the trace.
"""

from __future__ import annotations

import functools
import inspect

from torch_onnx_compat.backends.checks import Place, called_names
from torch_onnx_compat.stack import frame_of_model

_CACHED = type(functools.lru_cache(lambda: None))


def is_for_a_cache() -> bool:
    """Whether the code that hashes a size calls a function that functools caches."""
    frame = frame_of_model()
    if frame is None:
        return False
    for name in called_names(Place.of(frame)):
        first, *rest = name.split(".")
        found = frame.f_locals.get(first, frame.f_globals.get(first))
        for attribute in rest:
            found = inspect.getattr_static(found, attribute, None)
        if isinstance(found, _CACHED):
            return True
    return False
