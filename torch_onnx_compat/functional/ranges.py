"""The arguments of torch.arange, which come in four spellings."""

from __future__ import annotations

from typing import Any

import torch


def bounds_of(args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, Any, Any, dict[str, Any]]:
    """Start, end and step, and the options that are left."""
    names = ("end",) if len(args) == 1 else ("start", "end", "step")
    bounds = dict(zip(names, args, strict=False))
    bounds |= {name: options[name] for name in ("start", "end", "step") if name in options}
    rest = {name: value for name, value in options.items() if name not in bounds}
    return bounds.get("start", 0), bounds["end"], bounds.get("step", 1), rest


def are_whole(*bounds: Any) -> bool:
    """Whether all of them are integers by type: numbers, sizes or tensors."""
    return all(
        not (bound.is_floating_point() or bound.is_complex())
        if isinstance(bound, torch.Tensor)
        else isinstance(bound, (int, torch.SymInt))
        for bound in bounds
    )
