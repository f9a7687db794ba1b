"""In which order a product of several tensors is summed: opt_einsum's choice, made from the example's sizes.

torch asks opt_einsum, where that is installed, for the cheapest order of an einsum of three tensors or more; models
call it themselves, too. The order changes nothing but rounding and cost. Made from sizes that may vary, it would be
hundreds of decisions.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch_onnx_compat.functional.complex import Pair
from torch_onnx_compat.tracing import below_function_modes, example_size, without_tracing


@contextmanager
def choose_by_example() -> Iterator[None]:
    """While active, opt_einsum gets sizes as numbers, and computes with pairs as with torch's tensors."""
    library = sys.modules.get("opt_einsum")  # torch.backends.opt_einsum imports it where it is installed
    if library is None:
        yield
        return
    own = sys.modules.get("opt_einsum.contract", library)  # has the functions that the library's own code calls
    find_path, find_backend = library.contract_path, getattr(own, "infer_backend", None)

    def contract_path(subscripts: Any, *operands: Any, **options: Any) -> Any:
        by_shape = isinstance(subscripts, str) and all(hasattr(operand, "shape") for operand in operands)
        if options.get("shapes") or not by_shape:
            return find_path(subscripts, *operands, **options)
        found = find_path(subscripts, *map(_shape_of, operands), **{**options, "shapes": True})
        # With einsum_call, it returns the operands and the steps.
        return (list(operands), found[1]) if options.get("einsum_call") else found

    def infer_backend(operand: Any) -> Any:
        assert find_backend is not None
        return "torch" if isinstance(operand, Pair) else find_backend(operand)  # by the module of the operand's class

    library.contract_path = own.contract_path = contract_path  # type: ignore[attr-defined]
    if find_backend is not None:
        own.infer_backend = infer_backend  # type: ignore[attr-defined]
    try:
        yield
    finally:
        library.contract_path = own.contract_path = find_path  # type: ignore[attr-defined]
        if find_backend is not None:
            own.infer_backend = find_backend  # type: ignore[attr-defined]


def _shape_of(operand: Any) -> tuple[int, ...]:
    with without_tracing(), below_function_modes():
        return tuple(example_size(size) for size in operand.shape)
