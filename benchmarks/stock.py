"""Exports by torch.onnx.export alone with a dynamic batch, for the scripts that compare."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

PathOrFile = str | os.PathLike[str]


def repeat_batch(
    size: int, args: Sequence[Tensor], kwargs: Mapping[str, Tensor]
) -> tuple[tuple[Tensor, ...], dict[str, Tensor]]:
    """The example's inputs, some times over along the first axis, each time with other numbers."""

    def repeat(value: Tensor) -> Tensor:
        parts = [value, *(value.flip(-1) if value.is_floating_point() else value for _ in range(size - 1))]
        return torch.cat(parts[:size])

    return tuple(map(repeat, args)), {name: repeat(value) for name, value in kwargs.items()}


def export_torchscript(
    model: nn.Module,
    args: Sequence[Tensor],
    kwargs: Mapping[str, Tensor],
    path: str,
    opset: int,
    *,
    dynamic: bool = True,
) -> None:
    """Exports by the TorchScript exporter."""
    names = [f"in{place}" for place in range(len(args) + len(kwargs))]
    torch.onnx.export(
        model,
        (*args, dict(kwargs)) if kwargs else tuple(args),
        path,
        input_names=names,
        dynamic_axes={name: {0: "batch"} for name in names} if dynamic else None,
        dynamo=False,
        opset_version=opset,
    )


def export_dynamo(
    model: nn.Module,
    args: Sequence[Tensor],
    kwargs: Mapping[str, Tensor],
    path: str,
    opset: int,
    *,
    dynamic: bool = True,
) -> None:
    """Exports by torch's default, torch.export; two samples, as it fixes an axis of one."""
    names = [*list(inspect.signature(model.forward).parameters)[: len(args)], *kwargs]
    positional, named = repeat_batch(2, args, kwargs) if dynamic else (tuple(args), dict(kwargs))
    torch.onnx.export(
        model,
        positional,
        path,
        kwargs=named or None,
        dynamo=True,
        opset_version=opset,
        dynamic_shapes={name: {0: torch.export.Dim.DYNAMIC} for name in names} if dynamic else None,
        external_data=False,
        verbose=False,
    )
