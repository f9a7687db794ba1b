"""Reads ONNX files, made by whatever tool, without the weights that lie beside them."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx_ir as ir

from torch_onnx_compat.errors import ArgumentError


def load_proto(file: Path) -> onnx.ModelProto:
    """What a file holds.

    Raises:
        CompatError: It is no ONNX file, holds no graph, or does not say which opset it is written for.
    """
    try:
        proto = onnx.load(file, load_external_data=False)
    except Exception as error:  # protobuf's and the file system's errors have no common class
        raise _unreadable(file, error) from error
    if not proto.HasField("graph"):
        raise _unreadable(file, "it holds no graph.")
    if not {"", "ai.onnx"} & {opset.domain for opset in proto.opset_import} and any(
        node.domain in ("", "ai.onnx") for node in proto.graph.node
    ):
        raise _unreadable(file, "it does not say which opset it is written for.")
    return proto


def load_graph(file: Path) -> ir.Model:
    """A file's graph; weights beside the file are read when they are used.

    Raises:
        CompatError: As for load_proto(), or the graph cannot be taken apart.
    """
    proto = load_proto(file)
    try:
        return graph_of(proto, file.resolve().parent)
    except Exception as error:  # onnx_ir's errors have no common class
        raise _unreadable(file, error) from error


def graph_of(proto: onnx.ModelProto, folder: Path | None) -> ir.Model:
    """A model's graph, whose weights may lie beside the file in a folder."""
    model = ir.from_proto(proto)
    if folder is not None:
        ir.external_data.set_base_dir(model.graph, folder)
    return model


def _unreadable(file: Path, why: object) -> ArgumentError:
    return ArgumentError(f"{str(file)!r} cannot be read as an ONNX file: {why}")
