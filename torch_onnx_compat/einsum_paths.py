"""In which order a product of several tensors is summed: opt_einsum's choice, made from the example's sizes.

torch asks opt_einsum, where that is installed, for the cheapest order of an einsum of three tensors or more. The order
changes nothing but rounding and cost. Made from sizes that may vary, it would be hundreds of decisions.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor

from torch_onnx_compat.tracing import below_function_modes, example_size, without_tracing


@contextmanager
def choose_by_example() -> Iterator[None]:
    """While active, ``opt_einsum.contract_path`` gets the shapes of tensors as numbers."""
    library = sys.modules.get("opt_einsum")  # torch.backends.opt_einsum imports it where it is installed
    if library is None:
        yield
        return
    plain = library.contract_path

    def contract_path(subscripts: Any, *operands: Any, **options: Any) -> Any:
        if options.get("shapes") or not all(isinstance(operand, Tensor) for operand in operands):
            return plain(subscripts, *operands, **options)
        return plain(subscripts, *map(_shape_of, operands), **{**options, "shapes": True})

    library.contract_path = contract_path  # type: ignore[attr-defined]
    try:
        yield
    finally:
        library.contract_path = plain  # type: ignore[attr-defined]


def _shape_of(tensor: Tensor) -> tuple[int, ...]:
    with without_tracing(), below_function_modes():
        return tuple(example_size(size) for size in tensor.shape)
