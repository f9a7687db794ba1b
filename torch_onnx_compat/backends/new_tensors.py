"""``x.new_tensor(x.shape[1])``: a capture takes the number of a size for it, which fixes the axis."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat.functional.arithmetic import SYMBOLS
from torch_onnx_compat.watch import Watcher


class NewTensors(Watcher):
    """Makes tensors of sizes that a capture follows."""

    in_bodies = True

    def concerns(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether a call makes a tensor of sizes, or of lists of them."""
        return func == Tensor.new_tensor and _holds_sizes(_data(args, kwargs))

    def watch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Makes it of one tensor for each number."""
        dtype = kwargs.get("dtype") or args[0].dtype
        return _stack(_data(args, kwargs), {"dtype": dtype, "device": kwargs.get("device") or args[0].device})


def _data(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return args[1] if len(args) > 1 else kwargs.get("data")


def _holds_sizes(data: Any) -> bool:
    return any(map(_holds_sizes, data)) if isinstance(data, (list, tuple)) else isinstance(data, SYMBOLS)


def _stack(data: Any, options: dict[str, Any]) -> Tensor:
    if isinstance(data, Tensor):
        return data.to(**options)
    if isinstance(data, (list, tuple)):
        return torch.stack([_stack(item, options) for item in data])
    return torch.full((), data, **options)
