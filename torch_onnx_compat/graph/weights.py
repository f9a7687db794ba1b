"""Weights of a graph: the model's own tensors, not copies, released once they are no longer needed."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
import torch
from torch import Tensor

from torch_onnx_compat.ops import ONNX_TYPES


def as_onnx(tensor: Tensor, name: str) -> ir.Tensor[Any]:
    """A tensor as a read-only constant of a graph that shares its memory.

    Args:
        tensor: The tensor, of one of ONNX_TYPES; a tensor on another device is copied.
        name: The name of the constant.
    """
    dtype = ir.DataType(ONNX_TYPES[tensor.dtype])
    plain = tensor.detach().cpu().resolve_conj().resolve_neg()
    if plain.dtype is torch.bfloat16:  # numpy has no such type, so it gets the bits
        plain = plain.view(torch.int16)
    array = plain.numpy().view(dtype.numpy())
    array.flags.writeable = False
    return ir.Tensor(array, dtype=dtype, name=name)


def drop_weights(model: ir.Model) -> None:
    """Releases the values of a model's weights; its nodes, names and shapes stay."""
    for value in model.graph.initializers.values():
        value.const_value = None
