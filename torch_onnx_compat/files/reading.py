"""Reads ONNX files that nobody vouches for: what is broken or hostile in one is told before anything is loaded from it.

Source of the format: onnx.proto3 of the onnx package, and docs/ExternalData.md there.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir
from google.protobuf.message import DecodeError  # type: ignore[import-untyped,unused-ignore]

from torch_onnx_compat.errors import ArgumentError
from torch_onnx_compat.graph.walk import all_graphs

LARGEST_FILE = 2**31
"""Bytes; what is larger is no protobuf message."""

DEPTH = 100
"""Messages within each other that protobuf reads; a nested If is three of them."""

_SMALL = 4096
"""Bytes up to which weights are written within the message itself."""

LOWEST_OPSET = 7
"""The lowest opset that is read: before it, operators broadcast by an attribute, and engines have dropped them."""


@dataclass(frozen=True)
class OnnxFile:
    """An ONNX file that was read, without the weights beside it.

    Attributes:
        path: Where it is.
        proto: The message as it was read; nothing changes it.
        shown: What messages call it; by default `path`.
    """

    path: Path
    proto: onnx.ModelProto
    shown: Path | None = None

    def __str__(self) -> str:
        return str(self.shown or self.path)

    @property
    def opset(self) -> int:
        """The opset of ONNX's own operators; 0 where the file has none of them."""
        return next((o.version for o in self.proto.opset_import if o.domain in ("", "ai.onnx")), 0)

    def graph(self) -> ir.Model:
        """The graph as an ir.Model of its own, which takes the weights from where they are.

        Raises:
            CompatError: The graph cannot be taken apart, as with two values of one name.
        """
        _refuse_maps(self.path, self.proto)
        log = logging.getLogger("onnx_ir")
        level = log.level
        log.setLevel(logging.ERROR)  # its warnings are told by the proof, as one error
        try:
            model = ir.serde.deserialize_model(self.proto)
        except Exception as error:  # onnx_ir's errors have no common class
            raise ArgumentError(f"{self.path}: the graph cannot be read: {_one_line(_first_cause(error))}") from error
        finally:
            log.setLevel(level)
        for graph in (model.graph, *(function.graph for function in model.functions.values())):
            ir.external_data.set_base_dir(graph, self.path.parent)
        _take_in(model)
        return model


def read(path: str | os.PathLike[str]) -> OnnxFile:
    """Reads an ONNX file, and checks what it says about its own parts.

    Args:
        path: The file.

    Raises:
        CompatError: It is no path, not there, no ONNX file, cut off, of an opset before 7, its tensors do not hold what
            their shapes say, or its weights would be taken from outside of its folder.
    """
    given: Any = path
    if isinstance(given, bytes) or not isinstance(given, (str, os.PathLike)):
        raise ArgumentError(
            f"wanted the path of an ONNX file, not {type(given).__name__}; write the model to a file first, as "
            f"onnx.save(model, 'model.onnx') does."
        )
    path = Path(path)
    proto = _parse(path)
    if not proto.HasField("graph") or not proto.ir_version:
        raise ArgumentError(f"{path}: no ONNX file: it holds no {'graph' if proto.ir_version else 'IR version'}.")
    if not proto.graph.output:
        raise ArgumentError(f"{path}: the graph has no outputs, so there is nothing that it computes.")
    _check_texts(proto, path)
    file = OnnxFile(path, proto)
    domains = {(node.domain or "", node.op_type) for node in proto.graph.node}
    if not file.opset and any(domain in ("", "ai.onnx") for domain, _ in domains):
        raise ArgumentError(f"{path}: the file does not say which opset it is written for.")
    if 0 < file.opset < LOWEST_OPSET:
        raise ArgumentError(
            f"{path}: written for opset {file.opset}; wanted {LOWEST_OPSET} or later, which ONNX has had since 2018. "
            f"Export the model again."
        )
    for tensor in _tensors(proto):
        _check_tensor(tensor, path)
    return file


def weights_of(graph: onnx.GraphProto) -> set[str]:
    """The names of a graph's initialisers."""
    return {tensor.name for tensor in graph.initializer}


def describe_structure(path: Path) -> str:
    """What onnx's own checker objects to in a file, types and shapes included; empty where it objects to nothing."""
    try:
        onnx.checker.check_model(os.fspath(path), full_check=True)
    except Exception as error:  # ValidationError, and what the checker meets on its way
        text = _one_line(error)
        return "" if text.startswith("Field 'shape' of 'type' is required") else text  # many files lack shapes
    return ""


def _refuse_maps(path: Path, proto: onnx.ModelProto) -> None:
    """Names what holds maps, such as the probabilities of a classifier, before the graph cannot be read for it."""
    for value in (*proto.graph.input, *proto.graph.output, *proto.graph.value_info):
        held = value.type.sequence_type.elem_type if value.type.WhichOneof("value") == "sequence_type" else value.type
        if held.WhichOneof("value") == "map_type":
            raise ArgumentError(
                f"{path}: {value.name!r} holds maps, and only tensors and sequences of them are read; write the file "
                f"without ZipMap, as skl2onnx does with options={{'zipmap': False}}."
            )


def _parse(path: Path) -> onnx.ModelProto:
    try:
        size = path.stat().st_size
        if not path.is_file():
            raise ArgumentError(f"{path}: no file; wanted an ONNX file.")
        if not size:
            raise ArgumentError(f"{path}: the file is empty.")
        if size >= LARGEST_FILE:
            raise ArgumentError(
                f"{path}: {size / 1e9:.1f} GB; an ONNX file ends at 2 GiB, larger weights lie beside it."
            )
        proto = onnx.ModelProto()
        proto.ParseFromString(path.read_bytes())
    except OSError as error:
        raise ArgumentError(f"{path}: cannot be read: {error.strerror or error}.") from error
    except DecodeError as error:
        what = "no ONNX file, or one that was cut off"
        if "depth" in str(error).lower():
            what = f"parts lie deeper within each other than the {DEPTH} messages that protobuf reads"
        raise ArgumentError(f"{path}: {what}: {_one_line(error)}") from error
    return proto


def _check_texts(proto: onnx.ModelProto, path: Path) -> None:
    """Refuses names that are no text: protobuf gives such as bytes, and writes them no more."""
    todo: list[Any] = [proto]
    while todo:
        for field, value in todo.pop().ListFields():
            if field.type == field.TYPE_MESSAGE:
                todo += [value] if hasattr(value, "ListFields") else value
            elif field.type == field.TYPE_STRING:
                texts = [value] if isinstance(value, (str, bytes)) else value
                if any(isinstance(text, bytes) for text in texts):
                    name = field.full_name
                    raise ArgumentError(f"{path}: field {name!r} holds bytes that are no text; the file is broken.")


def _tensors(proto: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    todo: list[Any] = [proto.graph, *proto.functions]
    while todo:
        part = todo.pop()
        yield from getattr(part, "initializer", ())
        for sparse in getattr(part, "sparse_initializer", ()):
            yield from (sparse.values, sparse.indices)
        for node in part.node:
            for attribute in node.attribute:
                if attribute.HasField("t"):
                    yield attribute.t
                yield from attribute.tensors
                if attribute.HasField("g"):
                    todo.append(attribute.g)
                todo += attribute.graphs


def _check_tensor(tensor: onnx.TensorProto, path: Path) -> None:
    name = tensor.name or "without a name"
    try:
        dtype = ir.DataType(tensor.data_type)
    except ValueError:
        raise ArgumentError(
            f"{path}: tensor {name!r} is of element type {tensor.data_type}, which ONNX lacks."
        ) from None
    if dtype is ir.DataType.UNDEFINED:
        raise ArgumentError(f"{path}: tensor {name!r} has no element type.")
    if any(size < 0 for size in tensor.dims):
        raise ArgumentError(f"{path}: tensor {name!r} has a negative size, {list(tensor.dims)}.")
    count = prod(tensor.dims)
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        _check_external(tensor, name, -(-count * dtype.bitwidth // 8), path)
        return
    if dtype is ir.DataType.STRING:
        held, wanted = len(tensor.string_data), count
    elif tensor.HasField("raw_data"):
        held, wanted = len(tensor.raw_data), -(-count * dtype.bitwidth // 8)
    else:
        fields = (tensor.float_data, tensor.int32_data, tensor.int64_data, tensor.double_data, tensor.uint64_data)
        held, wanted = sum(map(len, fields)), _entries(dtype, count)
    if held != wanted:
        raise ArgumentError(
            f"{path}: tensor {name!r} holds {held} {'bytes' if tensor.HasField('raw_data') else 'values'}, but its "
            f"shape {list(tensor.dims)} wants {wanted}; the file is broken."
        )


def _entries(dtype: ir.DataType, count: int) -> int:
    """Entries of a tensor's list of numbers: complex ones take two each, narrow ones may share one."""
    if dtype in (ir.DataType.COMPLEX64, ir.DataType.COMPLEX128):
        return 2 * count
    return -(-count * dtype.bitwidth // 8) if dtype.bitwidth < 8 else count


def _check_external(tensor: onnx.TensorProto, name: str, wanted: int, path: Path) -> None:
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    folder = path.resolve().parent
    place = Path(os.path.realpath(folder / location))
    if not location or os.path.isabs(location) or not place.is_relative_to(folder):
        raise ArgumentError(
            f"{path}: tensor {name!r} is to be read from {location!r}, which is outside of the file's folder; "
            f"such a file is not opened."
        )
    if not place.is_file():
        raise ArgumentError(
            f"{path}: the weights of tensor {name!r} should lie in {location!r}, and that is not there."
        )
    try:
        offset, length = int(entries.get("offset", 0)), int(entries.get("length", wanted))
    except ValueError:
        raise ArgumentError(f"{path}: where tensor {name!r} lies in {location!r} is not told by numbers.") from None
    size = place.stat().st_size
    if offset < 0 or length != wanted or offset + length > size:
        raise ArgumentError(
            f"{path}: tensor {name!r} wants {wanted} bytes; the file says {length} from {offset} on in {location!r}, "
            f"which has {size}."
        )


def _take_in(model: ir.Model) -> None:
    """Reads the weights beside the file that a copy of the graph elsewhere would not find: all but the large ones."""
    for graph in all_graphs(model):
        for value in graph.initializers.values():
            tensor = value.const_value
            if isinstance(tensor, ir.ExternalTensor) and (graph is not model.graph or tensor.nbytes < _SMALL):
                (value.const_value,) = ir.external_data.convert_tensors_from_external([tensor])
        for node in graph:
            for name, attribute in node.attributes.items():
                if isinstance(attribute.value, ir.ExternalTensor):
                    (loaded,) = ir.external_data.convert_tensors_from_external([attribute.value])
                    node.attributes[name] = ir.AttrTensor(name, loaded)


def _first_cause(error: BaseException) -> BaseException:
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:400] or type(error).__name__
