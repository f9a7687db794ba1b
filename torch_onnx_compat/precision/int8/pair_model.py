"""A model of a quantized file in float32, in which every pair of a tensor or a weight can be switched on and off.

What a pair takes from a tensor is the same in the file, but for the rounding of integer kernels. One session answers
what each layer costs, and what each method of calibration, without a file for each.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime

from torch_onnx_compat.check.compare import Array
from torch_onnx_compat.precision.int8.writer import Ranges, Writer
from torch_onnx_compat.precision.layout import is_constant
from torch_onnx_compat.publish.publish import draft, is_large
from torch_onnx_compat.session import open_session, options_of_few_runs
from torch_onnx_compat.targets.placement import Placement

Feeds = Mapping[str, Any]


@dataclass
class PairModel:
    """Runs a graph with some of its pairs switched on.

    Attributes:
        tensors: By switch, the tensor or weight whose pair it switches.
        of_node: By node name, the switches of the pairs that it needs to be in eight bits.
    """

    tensors: dict[str, str]
    of_node: dict[str, set[str]]
    _results: onnxruntime.InferenceSession
    _errors: onnxruntime.InferenceSession
    _step_names: dict[str, tuple[str, str]]
    _writer: Writer
    _nodes: list[str]
    _steps: dict[str, Array] = field(default_factory=dict)
    runs: int = 0

    @classmethod
    def open(cls, stack: ExitStack, writer: Writer, ranges: Ranges, nodes: Sequence[str]) -> PairModel:
        """Builds the model and opens it.

        Args:
            stack: Holds the files while the model is in use.
            writer: Writes the pairs.
            ranges: Of all tensors; `use` takes others later.
            nodes: Names of the nodes in eight bits.
        """
        made = _Construction(writer.write(ranges, nodes, is_model_of_pairs=True), writer.placement)
        made.add_switches()
        results = _open(stack, made.model)
        made.add_errors()
        found = cls(made.tensors, made.of_node, results, _open(stack, made.model), made.steps, writer, list(nodes))
        found.use(ranges)
        return found

    def use(self, ranges: Ranges) -> None:
        """Takes other ranges."""
        steps = self._writer.steps(ranges, self._nodes)
        self._steps = {}
        for tensor, (scale_name, zero_name) in self._step_names.items():
            scale, zero_point = steps[tensor]
            self._steps |= {scale_name: scale, zero_name: zero_point}

    def run(self, feeds: Feeds, switches: Collection[str]) -> list[Array]:
        """The outputs with these pairs switched on."""
        self.runs += 1
        outputs: Any = self._results.run(None, {**feeds, **self._steps, **self._positions(switches)})
        return list(outputs)

    def run_all(self, feeds: Feeds) -> list[Array]:
        """The outputs with every pair switched on."""
        return self.run(feeds, self.tensors)

    def errors(self, feeds: Feeds) -> dict[str, tuple[float, float]]:
        """By tensor, the sums of squares of what its pair changes and of its values, each alone on exact values."""
        self.runs += 1
        names = [value.name for value in self._errors.get_outputs()]
        found: Any = self._errors.run(names, {**feeds, **self._steps, **self._positions(())})
        sums = dict(zip(names, (float(value) for value in found), strict=True))
        return {tensor: (sums[f"{switch}_noise"], sums[f"{switch}_signal"]) for switch, tensor in self.tensors.items()}

    def _positions(self, switches: Collection[str]) -> dict[str, Array]:
        return {switch: np.array(switch in switches) for switch in self.tensors}


class _Construction:
    """Makes the steps of activations inputs, and puts a switch behind each pair."""

    def __init__(self, model: ir.Model, placement: Placement) -> None:
        self.model = model
        self._placement = placement
        self.tensors: dict[str, str] = {}
        self.of_node: dict[str, set[str]] = {}
        self.steps: dict[str, tuple[str, str]] = {}
        self._pairs: dict[str, tuple[ir.Value, ir.Value]] = {}

    def add_switches(self) -> None:
        """Puts a Where behind each pair, between the tensor and what the pair makes of it."""
        for node in list(self.model.graph):
            quantize = node.inputs[0].producer() if node.op_type == "DequantizeLinear" and node.inputs[0] else None
            if quantize is not None and quantize.op_type == "QuantizeLinear":
                self._add_switch(quantize, node)

    def add_errors(self) -> None:
        """Makes the sums of squares of all pairs the outputs."""
        outputs = []
        for switch, (plain, paired) in self._pairs.items():
            difference = self._append("Sub", [paired, plain], f"{switch}_difference")
            for name, value in (("noise", difference), ("signal", plain)):
                outputs.append(self._append("ReduceSumSquare", [value], f"{switch}_{name}", keepdims=0))
        self.model.graph.outputs.clear()
        self.model.graph.outputs.extend(outputs)

    def _add_switch(self, quantize: ir.Node, dequantize: ir.Node) -> None:
        graph = self.model.graph
        plain, paired = quantize.inputs[0], dequantize.outputs[0]
        assert plain is not None
        switch = f"pair_{len(self.tensors)}"
        readers = {use.node.name for use in paired.uses()}
        name = str(paired.name if paired.is_graph_output() else plain.name)
        if not is_constant(plain):
            self._free_steps(quantize)
        position = ir.Value(name=switch, type=ir.TensorType(ir.DataType.BOOL), shape=ir.Shape([]))
        graph.inputs.append(position)
        where = ir.node("Where", [position, paired, plain], name=f"{switch}_where")
        output = where.outputs[0]
        output.type, output.shape = ir.TensorType(ir.DataType.FLOAT), paired.shape
        if paired.is_graph_output():
            output.name, paired.name = paired.name, f"{switch}_paired"
            graph.outputs[list(graph.outputs).index(paired)] = output
        else:
            output.name = f"{switch}_switched"
        ir.convenience.replace_all_uses_with(paired, output)
        where.replace_input_with(1, paired)
        graph.insert_after(dequantize, where)
        self.tensors[switch] = name
        self._pairs[switch] = (plain, paired)
        made_by = plain.producer()
        is_own = made_by is not None and made_by.op_type not in self._placement.float_results
        for node in {*readers, *([made_by.name] if made_by is not None and is_own else [])}:
            self.of_node.setdefault(str(node), set()).add(switch)

    def _free_steps(self, quantize: ir.Node) -> None:
        """Makes inputs of the scale and the zero point; tensors may share theirs."""
        scale, zero_point = quantize.inputs[1:3]
        assert scale is not None
        assert zero_point is not None
        names = (str(scale.name), str(zero_point.name))
        if names[0] not in self.model.graph.initializers:
            return
        self.steps[names[0].removesuffix("_scale")] = names
        for value in (scale, zero_point):
            del self.model.graph.initializers[str(value.name)]
            value.const_value = None
            self.model.graph.inputs.append(value)

    def _append(self, op_type: str, inputs: Sequence[ir.Value], name: str, **attributes: Any) -> ir.Value:
        node = ir.node(op_type, inputs, attributes, name=name)
        self.model.graph.append(node)
        output = node.outputs[0]
        output.name, output.type = name, ir.TensorType(ir.DataType.FLOAT)
        return output


def _open(stack: ExitStack, model: ir.Model) -> onnxruntime.InferenceSession:
    """Opens a model as it is written: an optimizer would take pairs for a file's, and run them in eight bits."""
    options = options_of_few_runs()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    written = stack.enter_context(draft(model, None, is_large(model)))
    return open_session(written.path, sess_options=options)
