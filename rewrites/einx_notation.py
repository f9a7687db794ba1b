"""einx: functions of tensors along axes with names, which einx compiles for the sizes that it meets.

Math: torch_onnx_compat.functional.named_axes.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.named_axes import NotNamed, elementwise, identity, number_or_tensor

_SOURCE = "https://einx.readthedocs.io/en/stable/gettingstarted/tutorial_notation.html"
_FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    "id": identity,
    "where": torch.where,
    "add": torch.add,
    "subtract": torch.subtract,
    "multiply": torch.multiply,
    "divide": torch.divide,
    "maximum": number_or_tensor(torch.maximum),
    "minimum": number_or_tensor(torch.minimum),
    "less": torch.less,
    "less_equal": torch.less_equal,
    "greater": torch.greater,
    "greater_equal": torch.greater_equal,
    "equal": torch.eq,
    "not_equal": torch.ne,
    "logical_and": torch.logical_and,
    "logical_or": torch.logical_or,
}


def _register(name: str, function: Callable[..., Tensor]) -> None:
    def body(description: str, *tensors: Any, **sizes: Any) -> Tensor:
        if any(not isinstance(value, (Tensor, int, float)) for value in tensors):
            return NotImplemented
        if any(key in ("backend", "graph") or isinstance(value, (str, tuple, list)) for key, value in sizes.items()):
            return NotImplemented
        try:
            return elementwise(function, description, tensors, sizes)
        except NotNamed:
            return NotImplemented

    body.__name__ = body.__qualname__ = f"einx_{name}"
    body.__doc__ = f"einx.{name} of any sizes. Brackets and repeated axes are left to einx."
    matches = (f"einx.{name}", "einx.rearrange") if name == "id" else f"einx.{name}"  # its name before einx 0.4
    rewrite(matches, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING, source=_SOURCE)(body)


for _name, _function in _FUNCTIONS.items():
    _register(_name, _function)
