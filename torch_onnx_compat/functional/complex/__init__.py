"""Complex tensors as pairs of real ones, which is all that ONNX has.

While a model is exported, a `Pair` (pair.py) takes the place of a complex tensor, and what torch's functions make of it
is written in functions.py.
"""

from torch_onnx_compat.functional.complex.functions import polar, view_as_real
from torch_onnx_compat.functional.complex.pair import (
    Pair,
    answer,
    answer_directly,
    has_complex,
    has_pairs,
    is_complex,
    part_type,
    with_pairs,
)

__all__ = [
    "Pair",
    "answer",
    "answer_directly",
    "has_complex",
    "has_pairs",
    "is_complex",
    "part_type",
    "polar",
    "view_as_real",
    "with_pairs",
]
