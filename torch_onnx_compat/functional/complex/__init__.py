"""Complex tensors as pairs of real ones, the form in which a file holds them.

While a model is exported, a `Pair` (pair.py) replaces a complex tensor; functions.py, products.py and elementary.py
have torch's functions of pairs.
"""

from torch_onnx_compat.functional.complex import in_place  # noqa: F401  (it registers handlers, the others', too)
from torch_onnx_compat.functional.complex.elementary import polar
from torch_onnx_compat.functional.complex.functions import view_as_real
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
