"""Complex tensors as pairs of real ones, the form in which a file holds them.

While a model is exported, a `Pair` (pair.py) replaces a complex tensor; functions.py has torch's functions of pairs.
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
