"""Every use of onnxruntime's quantisers: ranges from histograms, pairs, integer operators, weights of few bits."""

from __future__ import annotations

import importlib
import io
import logging
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from onnxruntime.quantization import QuantFormat, QuantType
from onnxruntime.quantization.calibrate import HistogramCollector, TensorData
from onnxruntime.quantization.onnx_quantizer import ONNXQuantizer
from onnxruntime.quantization.qdq_quantizer import QDQQuantizer
from onnxruntime.quantization.quant_utils import QuantizationMode

from torch_onnx_compat.check.compare import Array
from torch_onnx_compat.targets.placement import DEQUANTIZE, Placement

Range = tuple[float, float]
Ranges = Mapping[str, Range]
"""The least and the largest number of tensors, by name, that get a step of their own."""

MIN_MAX, ENTROPY = "min-max", "entropy"
PERCENTILES = {"99.999 %": 99.999, "99.99 %": 99.99, "99.9 %": 99.9, "99 %": 99.0}
METHODS = (MIN_MAX, *PERCENTILES, ENTROPY)

BINS, ENTROPY_BINS, STEPS = 2048, 256, 128
"""The search for the least entropy tries each pair of bins: its time grows with the square of their number."""

STAND_IN = "torch_onnx_compat.stand_in"
"""The domain of nodes with bodies while the quantiser works: it would build them anew, and fail at an empty list."""

SHAPES_ARE_KNOWN = ("onnx.infer", "onnxruntime.quant")
"""The note that the quantiser looks for; without it, it writes the model to a file and infers the shapes again."""


@dataclass
class RangeCollector:
    """Collects histograms of tensors, run by run, and finds the ranges that each method would give them."""

    _fine: Any = field(default_factory=lambda: _collector(BINS))
    _coarse: Any = field(default_factory=lambda: _collector(ENTROPY_BINS))

    def add(self, tensors: Mapping[str, Array]) -> None:
        """Adds the tensors of one run, float32 and finite, by name."""
        with _quietly():
            for collector in (self._fine, self._coarse):
                collector.collect(dict(tensors))

    def ranges(self) -> dict[str, dict[str, Range]]:
        """By method, the range of each tensor."""
        found: dict[str, dict[str, Range]] = {}
        histograms = self._fine.histogram_dict
        found[MIN_MAX] = {name: (float(values[2]), float(values[3])) for name, values in histograms.items()}
        with _quietly():
            for method, percentile in PERCENTILES.items():
                self._fine.percentile = percentile
                found[method] = _limits(self._fine.compute_percentile())
            found[ENTROPY] = _limits(self._coarse.compute_entropy())
        return found


def _collector(bins: int) -> Any:
    return HistogramCollector(
        method="entropy", symmetric=False, num_bins=bins, num_quantized_bins=STEPS, percentile=99.99, scenario="same"
    )


def _limits(thresholds: Mapping[str, Any]) -> dict[str, Range]:
    return {name: (float(values[0]), float(values[1])) for name, values in thresholds.items()}


@contextmanager
def _quietly() -> Iterator[None]:
    """Keeps the library from printing what it does, and from configuring the process's logging at its first warning."""
    handler = logging.NullHandler()
    logging.getLogger().addHandler(handler)
    try:
        with redirect_stdout(io.StringIO()), np.errstate(all="ignore"):
            yield
    finally:
        logging.getLogger().removeHandler(handler)


@dataclass(frozen=True)
class Writer:
    """Writes pairs of QuantizeLinear and DequantizeLinear around some nodes of a model.

    Args:
        model: A float32 model whose weights are initializers, with the types of all values and unique node names.
        placement: The form that the engine wants.
    """

    model: onnx.ModelProto
    placement: Placement

    def write(self, ranges: Ranges, nodes: Collection[str], *, is_model_of_pairs: bool = False) -> ir.Model:
        """A copy of the model with pairs.

        Args:
            ranges: The ranges of the float32 tensors that the nodes read and make.
            nodes: Names of the nodes; without any, the copy is the model itself.
            is_model_of_pairs: Whether every quantized tensor and weight has a pair of its own behind its float32 form,
                and no node is removed: a model of what the file computes, not the file.
        """
        if not nodes:
            return ir.from_proto(self.model)
        with _quietly():
            quantizer = self._quantizer(ranges, nodes, is_model_of_pairs=is_model_of_pairs)
            quantizer.quantize_model()
        return _finished(quantizer.model.model, self.model)

    def steps(self, ranges: Ranges, nodes: Collection[str]) -> dict[str, tuple[Array, Array]]:
        """The scale and the zero point of each tensor, as `write` gives them."""
        with _quietly():
            quantizer = self._quantizer(ranges, nodes, is_model_of_pairs=True)
        found = {name: params.original for name, params in quantizer.quantization_params.items()}
        return {name: (np.asarray(p["scale"]), np.asarray(p["zero_point"])) for name, p in found.items()}

    def _quantizer(self, ranges: Ranges, nodes: Collection[str], *, is_model_of_pairs: bool) -> Any:
        placement = self.placement
        copy = _with_stand_ins(self.model)
        overrides = {name: [{"quant_type": QuantType.QInt8}] for name in _unusual_weights(copy, nodes)}
        options = {
            "ActivationSymmetric": placement.symmetric,
            "WeightSymmetric": True,
            "QuantizeBias": placement.int32_bias and not is_model_of_pairs,
            "AddQDQPairToWeight": is_model_of_pairs,
            "QDQKeepRemovableActivations": is_model_of_pairs,
            "DedicatedQDQPair": placement.pair_per_reader and not is_model_of_pairs,
            "OpTypesToExcludeOutputQuantization": list(placement.float_results),
            "TensorQuantOverrides": overrides,
        }
        return QDQQuantizer(
            copy,
            per_channel=placement.per_channel,
            reduce_range=placement.weight_bits == 7,
            weight_qType=QuantType.QInt8,
            activation_qType=QuantType.QUInt8 if placement.activations == "uint8" else QuantType.QInt8,
            tensors_range={name: _tensor_data(limits) for name, limits in ranges.items()},
            nodes_to_quantize=list(nodes),
            nodes_to_exclude=[],
            op_types_to_quantize=[*placement.kernels, *placement.between],
            extra_options=options,
        )


def write_dynamic(model: onnx.ModelProto, nodes: Collection[str], placement: Placement) -> ir.Model:
    """A copy of a model in which some nodes run in eight bits, with ranges found at run time.

    Args:
        model: A float32 model whose weights are initializers, with unique node names.
        nodes: Names of the nodes; without any, the copy is the model itself.
        placement: The form that the engine wants.
    """
    if not nodes:
        return ir.from_proto(model)
    with _quietly():
        quantizer = ONNXQuantizer(
            _with_stand_ins(model),
            placement.per_channel,
            placement.weight_bits == 7,
            QuantizationMode.IntegerOps,
            False,
            QuantType.QInt8,
            QuantType.QUInt8,
            None,
            list(nodes),
            [],
            list(placement.dynamic),
            {"MatMulConstBOnly": True, "WeightSymmetric": True},
        )
        quantizer.quantize_model()
    return _finished(quantizer.model.model, model)


def write_weights(
    model: onnx.ModelProto, nodes: Collection[str], bits: int, block_size: int, placement: Placement
) -> ir.Model:
    """A copy of a model in which the weights of some matrix products have few bits, a scale for each block of them.

    Args:
        model: A float32 model whose weights are initializers, with unique node names.
        nodes: Names of the products; without any, the copy is the model itself.
        bits: 8 or 4.
        block_size: How many weights along the axis that is added up share a scale.
        placement: The form that the engine wants.
    """
    if not nodes:
        return ir.from_proto(model)
    form = QuantFormat.QDQ if placement.weight_only == DEQUANTIZE else QuantFormat.QOperator
    with _quietly():
        library = importlib.import_module(
            "onnxruntime.quantization.matmul_nbits_quantizer"
        )  # it configures the logging
        quantizer = library.MatMulNBitsQuantizer(
            _with_stand_ins(model),
            bits=bits,
            block_size=block_size,
            is_symmetric=placement.symmetric,
            nodes_to_exclude=[node.name for node in model.graph.node if node.name not in set(nodes)],
            quant_format=form,
        )
        quantizer.process()
    return _finished(quantizer.model.model, model)


def _with_stand_ins(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy as the quantiser takes it: nodes with bodies have stand-ins, and the shapes count as inferred."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for node in copy.graph.node:
        if any(True for _ in _bodies(node)):
            node.domain = STAND_IN
            del node.attribute[:]
    copy.opset_import.add(domain=STAND_IN, version=1)
    note = copy.metadata_props.add()
    note.key, note.value = SHAPES_ARE_KNOWN
    return copy


def _finished(written: onnx.ModelProto, model: onnx.ModelProto) -> ir.Model:
    """What the quantiser made of a model, with the notes and the nodes with bodies of that one."""
    _put_back_holders(written, model)
    domains = [opset for opset in written.opset_import if opset.domain != STAND_IN]
    del written.opset_import[:]
    written.opset_import.extend(domains)
    written.producer_name, written.producer_version = model.producer_name, model.producer_version
    del written.metadata_props[:]
    written.metadata_props.extend(model.metadata_props)
    made = ir.from_proto(written)
    made.graph.sort()  # the quantiser appends its nodes
    return made


def _put_back_holders(written: onnx.ModelProto, model: onnx.ModelProto) -> None:
    """Puts nodes with bodies in the places of their stand-ins, and back the weights that only bodies read."""
    holders = {node.name: node for node in model.graph.node}
    wanted: set[str] = set()
    for node in written.graph.node:
        if node.domain == STAND_IN:
            inputs, outputs = list(node.input), list(node.output)
            node.CopyFrom(holders[node.name])
            del node.input[:], node.output[:]
            node.input.extend(inputs)
            node.output.extend(outputs)
            wanted.update(_names_read_in(node))
    wanted -= {tensor.name for tensor in written.graph.initializer}
    written.graph.initializer.extend(t for t in model.graph.initializer if t.name in wanted)


def _bodies(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    for attribute in node.attribute:
        yield from attribute.graphs
        if attribute.HasField("g"):
            yield attribute.g


def _names_read_in(node: onnx.NodeProto) -> Iterator[str]:
    """The names that the bodies of a node read."""
    for body in _bodies(node):
        yield from (value.name for value in body.output)
        for inner in body.node:
            yield from inner.input
            yield from _names_read_in(inner)


def _tensor_data(limits: Range) -> Any:
    return TensorData(lowest=np.float32(limits[0]), highest=np.float32(limits[1]))


def _unusual_weights(model: onnx.ModelProto, nodes: Collection[str]) -> Iterator[str]:
    """The weights of matrix products whose channels are not on axis 1, where the quantiser would look for them."""
    ranks = {tensor.name: len(tensor.dims) for tensor in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "MatMul" and node.name in nodes:
            if node.input[0] in ranks:
                yield node.input[0]
            if ranks.get(node.input[1], 2) != 2:
                yield node.input[1]
