"""torch's record of custom operators that are written in Python, `torch.library.custom_op`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

from torch._library.custom_ops import OPDEFS, CustomOpDef
from torch._ops import OpOverload, OpOverloadPacket

__all__ = ["CustomOpDef", "operator_name", "python_operators", "without_operators"]


def python_operators() -> frozenset[str]:
    """The names of all that are defined, as ``namespace::name``, but for torch's own."""
    return frozenset(name for name, made in list(OPDEFS.items()) if not _is_torchs(made._init_fn))


def _is_torchs(function: Any) -> bool:
    module = str(function.__module__)
    return module.startswith("torch.") and not module.startswith("torch._library.")  # where triton_op wraps functions


def operator_name(operator: Any) -> str:
    """The name of what ``torch.ops`` gives, a packet or an overload; empty of anything else."""
    if isinstance(operator, OpOverload):
        return str(operator._schema.name)
    return str(operator._qualified_op_name) if isinstance(operator, OpOverloadPacket) else ""


@contextmanager
def without_operators(names: Collection[str]) -> Iterator[None]:
    """While active, some custom operators are the functions that they call for tensors on the processor.

    Function modes see what these call as they see the model's own calls, and nothing of the operator.
    """

    def replace(torchs: Callable[..., Any]) -> Callable[..., Any]:
        def call(operator: Any, /, *args: Any, **kwargs: Any) -> Any:
            name = operator_name(operator)
            definition: Any = OPDEFS.get(name) if name in names else None
            if definition is None:
                return torchs(operator, *args, **kwargs)
            return definition._backend_fns.get("cpu", definition._init_fn)(*args, **kwargs)

        return call

    kinds: tuple[Any, ...] = (OpOverload, OpOverloadPacket)
    before = [kind.__call__ for kind in kinds]
    try:
        for kind in kinds:
            kind.__call__ = replace(kind.__call__)
        yield
    finally:
        for kind, own in zip(kinds, before, strict=True):
            kind.__call__ = own
