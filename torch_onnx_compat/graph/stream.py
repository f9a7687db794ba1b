"""Writes models with their weights inside, without copying the weights.

onnx.save builds the whole message in memory and then its bytes. A message's fields may stand in any order, so here
protobuf handles everything but the data of the weights, which goes straight from its tensor to the file.
Source: https://protobuf.dev/programming-guides/encoding/ (length-delimited records); onnx.proto for the field numbers.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

import numpy as np
import onnx
import onnx_ir as ir

from torch_onnx_compat.garbage import pause_collection

_LARGE = 1024
"""Bytes from which a weight is streamed."""

_LENGTH_DELIMITED = 2
_GRAPH = onnx.ModelProto.GRAPH_FIELD_NUMBER
_INITIALIZER = onnx.GraphProto.INITIALIZER_FIELD_NUMBER
_RAW_DATA = onnx.TensorProto.RAW_DATA_FIELD_NUMBER


@pause_collection()
def write_model(model: ir.Model, file: BinaryIO) -> None:
    """Writes a model.

    Args:
        model: The model; unchanged.
        file: Where to.
    """
    weights = {
        str(value.name): value.const_value
        for value in model.graph.initializers.values()
        if value.const_value is not None
        and value.const_value.nbytes >= _LARGE
        and value.const_value.dtype is not ir.DataType.STRING
    }
    with _empty_weights(model, weights):
        proto = ir.serde.serialize_model(model)
    small = [t for t in proto.graph.initializer if t.name not in weights]
    del proto.graph.initializer[:]
    proto.graph.initializer.extend(small)
    graph = proto.graph.SerializeToString()
    proto.ClearField("graph")
    heads = {name: _head(name, tensor) for name, tensor in weights.items()}
    records = {name: len(head) + weights[name].nbytes for name, head in heads.items()}
    length = len(graph) + sum(len(_prefix(_INITIALIZER, size)) + size for size in records.values())

    file.write(proto.SerializeToString())
    file.write(_prefix(_GRAPH, length))
    file.write(graph)
    for name, head in heads.items():
        file.write(_prefix(_INITIALIZER, records[name]))
        file.write(head)
        file.write(_data(weights[name]))


def _data(tensor: ir.TensorProtocol) -> bytes | memoryview:
    """A tensor's bytes as ONNX wants them: little-endian, row by row, two 4-bit values to a byte."""
    if sys.byteorder != "little" or tensor.dtype.itemsize < 1:
        return tensor.tobytes()
    return np.ascontiguousarray(tensor.numpy()).reshape(-1).view(np.uint8).data


@contextmanager
def _empty_weights(model: ir.Model, weights: dict[str, ir.TensorProtocol]) -> Iterator[None]:
    """Replaces each weight by an empty tensor for a while."""
    initializers = model.graph.initializers
    try:
        for name in weights:
            initializers[name].const_value = ir.tensor(np.zeros(0, np.float32), name=name)
        yield
    finally:
        for name, tensor in weights.items():
            initializers[name].const_value = tensor


def _head(name: str, tensor: ir.TensorProtocol) -> bytes:
    """A TensorProto up to its data."""
    head = onnx.TensorProto(name=name, data_type=int(tensor.dtype), dims=tensor.shape.numpy())
    return bytes(head.SerializeToString()) + _prefix(_RAW_DATA, tensor.nbytes)


def _prefix(field: int, length: int) -> bytes:
    """Tag and length of a length-delimited field."""
    return _varint(field << 3 | _LENGTH_DELIMITED) + _varint(length)


def _varint(number: int) -> bytes:
    data = bytearray()
    while number > 0x7F:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    data.append(number)
    return bytes(data)
