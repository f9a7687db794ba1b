"""Makes a graph the file that was asked for: opset, names, dynamic axes, standard operators, provenance."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

import onnx_ir as ir

from torch_onnx_compat.backends import ExportedGraph, ExportFailed, ExportJob
from torch_onnx_compat.errors import CompatError, UnsupportedError
from torch_onnx_compat.graph.adapt.adapt import adapt_to_target
from torch_onnx_compat.graph.halves import keep_rounding
from torch_onnx_compat.graph.names import claim_name, rename
from torch_onnx_compat.graph.opset.convert import convert
from torch_onnx_compat.graph.padding import keep_zeros
from torch_onnx_compat.graph.provenance import drop_traces, strip_adapter
from torch_onnx_compat.graph.reductions import keep_nothing
from torch_onnx_compat.graph.slim.scales import multiply_scales
from torch_onnx_compat.graph.tidy.tidy import tidy
from torch_onnx_compat.graph.walk import all_nodes
from torch_onnx_compat.inputs.inputs import output_names
from torch_onnx_compat.ops import ONNX_TYPES
from torch_onnx_compat.request import METADATA_PREFIX, File

PRODUCER = "torch_onnx_compat"


def finish(raw: ExportedGraph, job: ExportJob, file: File, metadata: dict[str, Any]) -> ir.Model:
    """Turns an exporter's graph into the file that was asked for; changes the graph in place.

    Args:
        raw: What the exporter made.
        job: What it was made from.
        file: What the file should be.
        metadata: Provenance, written into metadata_props.

    Raises:
        UnsupportedError: The opset cannot be written, or a node is of a domain that was not allowed.
        ExportFailed: A dynamic axis came out fixed.
    """
    model = raw.model
    _strip_adapter(model)
    if file.optimize:
        folds = job.plan.target.folds
        is_fixed = file.export_params and not file.keep_initializers_as_inputs
        tidy(model, fold=job.plan.exporter == "dynamo" or not folds, whole=not folds, is_fixed=is_fixed)
        if file.scales and is_fixed:
            multiply_scales(model)
    convert(model, file.opset)
    keep_nothing(model)
    adapt_to_target(model, job.plan.target)
    keep_zeros(model)
    keep_rounding(model)
    model.ir_version = min(model.ir_version, job.plan.target.ir_version)
    # Not "pytorch": OpenCV then counts the padding in every AveragePool.
    model.producer_name, model.producer_version = PRODUCER, None
    _set_inputs(model, job)
    _set_outputs(model, job, file.output_names)
    _name_axes(model, job, raw.renamed_axes)
    _forget_branch_shapes(model, job)
    _check_domains(model, file.domains)
    _set_initializers(model, file)
    drop_traces(model)
    for key, value in metadata.items():
        model.metadata_props[METADATA_PREFIX + key] = str(value)
    model.metadata_props.update(file.metadata)
    model.graph.name = model.graph.name or "main_graph"
    return model


def node_counts(model: ir.Model) -> Counter[str]:
    """How many nodes of each operator the model holds, subgraphs and functions included."""
    counts: Counter[str] = Counter()
    for graph in (model.graph, *(f.graph for f in model.functions.values())):
        counts.update(f"{n.domain}::{n.op_type}" if n.domain else n.op_type for n in all_nodes(graph))
    return counts


def _strip_adapter(model: ir.Model) -> None:
    """Takes the adapter around the twin out of the names of nodes and weights."""
    strip_adapter(model, "twin")
    for name in list(model.graph.initializers):
        if name.startswith("twin."):
            rename(model, model.graph.initializers[name], name.removeprefix("twin."))


def _set_inputs(model: ir.Model, job: ExportJob) -> None:
    """Inputs by the names asked for, in the model's order, unused ones included."""
    present = {value.name: value for value in model.graph.inputs}
    ordered = []
    for name, tensor in zip(job.inputs.names, job.inputs.tensors, strict=True):
        value = present.pop(name, None)
        if value is None:
            value = ir.Value(name=name)
        if value.dtype is None:
            value.dtype = ir.DataType(ONNX_TYPES[tensor.dtype])
        if value.shape is None or len(value.shape) != tensor.dim():
            value.shape = ir.Shape(list(tensor.shape))
        ordered.append(value)
    if present:
        raise ExportFailed(f"the exporter added inputs of its own: {', '.join(map(str, present))}.")
    model.graph.inputs.clear()
    model.graph.inputs.extend(ordered)


def _set_outputs(model: ir.Model, job: ExportJob, given: Sequence[str]) -> None:
    outputs = model.graph.outputs
    if len(outputs) != len(job.subject.outputs.paths):
        raise ExportFailed(
            f"the exporter wrote {len(outputs)} outputs, but the model returned {len(job.subject.outputs.paths)}."
        )
    names = output_names(job.subject.outputs.paths, given)
    for index, (name, value) in enumerate(zip(names, list(outputs), strict=True)):
        shared = value in outputs[:index] or value.is_graph_input() or value.name in model.graph.initializers
        if shared:  # ONNX wants every output to be its own value
            node = ir.node("Identity", [value])
            node.outputs[0].shape, node.outputs[0].type = value.shape, value.type
            model.graph.append(node)
            outputs[index] = value = node.outputs[0]
        if name in job.inputs.names:
            if name in given:
                raise CompatError(f"{name!r} is the name of both an input and an output; ONNX names must differ.")
            name = f"{name}_output"
        claim_name(model, value, name)


def _name_axes(model: ir.Model, job: ExportJob, renamed: dict[str, str]) -> None:
    """Writes the axis names that were asked for, and refuses a file in which such an axis is fixed."""
    if renamed:
        _rename_symbols(model, renamed)
    for value, axes in zip(model.graph.inputs, job.inputs.axes, strict=True):
        assert value.shape is not None
        dims: list[Any] = list(value.shape)
        for dim, axis in axes.items():
            if isinstance(dims[dim], int) and dims[dim] is not None and _is_used(value):
                if axis.required:
                    raise ExportFailed(
                        f"axis {dim} ({axis.name!r}) of input {value.name!r} came out fixed at {dims[dim]} in the file."
                    )
                continue
            dims[dim] = axis.name
        value.shape = ir.Shape(dims)


def _forget_branch_shapes(model: ir.Model, job: ExportJob) -> None:
    """Drops the sizes that the exporter wrote inside branches and loop bodies when sizes may vary; ranks stay.

    The sizes hold for the example: torch.export shortens ``x[:3]`` to 3 rows where the example has as many, and
    onnxruntime takes its word for the memory of the branch's result. OpenCV does not load bodies without ranks.
    """
    if not job.inputs.sizes():
        return
    outer = set(model.graph)
    for node in all_nodes(model.graph):
        if node not in outer:
            for output in node.outputs:
                if output.shape is not None:
                    output.shape = ir.Shape([None] * len(output.shape))


def _is_used(value: ir.Value) -> bool:
    return bool(value.uses())


def _rename_symbols(model: ir.Model, renamed: dict[str, str]) -> None:
    pattern = re.compile("|".join(rf"\b{re.escape(s)}\b" for s in sorted(renamed, key=len, reverse=True)))

    def rename(value: ir.Value) -> None:
        if value.shape is None:
            return
        dims: list[Any] = []
        for dim in value.shape:
            text = getattr(dim, "value", dim)
            dims.append(pattern.sub(lambda m: renamed[m.group()], text) if isinstance(text, str) else text)
        value.shape = ir.Shape(dims)

    for value in (*model.graph.inputs, *model.graph.initializers.values()):
        rename(value)
    for node in all_nodes(model.graph):
        for output in node.outputs:
            rename(output)


def _check_domains(model: ir.Model, allowed: bool | Collection[str]) -> None:
    if allowed is True:
        return
    permitted = {"", "ai.onnx", *([] if allowed is False else allowed)}
    found = {f"{n.domain}::{n.op_type}": n.domain for n in all_nodes(model.graph) if n.domain not in permitted}
    found = {
        name: domain for name, domain in found.items() if not any(f.domain == domain for f in model.functions.values())
    }
    if found:
        domains = sorted(set(found.values()))
        raise UnsupportedError(
            f"the file would hold nodes that are no standard ONNX operators: {', '.join(sorted(found))}; "
            f"pass allow_custom_domains={domains!r} if the engine has them."
        )


def _set_initializers(model: ir.Model, file: File) -> None:
    graph = model.graph
    if not file.export_params:
        for value in graph.initializers.values():
            graph.inputs.append(ir.Value(name=value.name, type=value.type, shape=value.shape))
        for name in list(graph.initializers):
            new = next(v for v in graph.inputs if v.name == name)
            ir.convenience.replace_all_uses_with(graph.initializers[name], new)
            del graph.initializers[name]
    elif file.keep_initializers_as_inputs:
        graph.inputs.extend(v for v in graph.initializers.values() if v not in graph.inputs)
