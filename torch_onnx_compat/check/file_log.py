"""The tensors inside an ONNX file: the node that computes each, its dependencies, and a sample of its values."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import onnx
import onnx_ir as ir
import onnxruntime

from torch_onnx_compat.check.compare import Array
from torch_onnx_compat.check.eager_log import sample
from torch_onnx_compat.check.verify import run_session
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.graph.loading import graph_of, load_proto
from torch_onnx_compat.inputs.inputs import Inputs
from torch_onnx_compat.places import module_path
from torch_onnx_compat.session import open_session

_SCOPES = "pkg.torch.onnx.name_scopes"


class NotRun(CompatError):
    """onnxruntime does not load the file, or does not run it on the inputs."""


@dataclass(frozen=True)
class Value:
    """A tensor of the file as one run computed it."""

    shape: tuple[int, ...]
    sample: Array
    is_float: bool


@dataclass
class FileLog:
    """A file's graph, and the tensors that were read so far."""

    model: onnx.ModelProto
    folder: Path | None
    """The folder of weights outside the file."""
    inputs: Inputs
    makers: dict[str, onnx.NodeProto] = field(default_factory=dict)
    """The node that computes each tensor, in the order of execution."""
    values: dict[str, Value] = field(default_factory=dict)

    @classmethod
    def open(cls, file: str | os.PathLike[str] | bytes | onnx.ModelProto, inputs: Inputs) -> FileLog:
        """Reads a file's graph without its external weights.

        Args:
            file: Path, serialised model or model.
            inputs: The inputs to run it on.
        """
        if isinstance(file, onnx.ModelProto):
            log = cls(file, None, inputs)
        elif isinstance(file, bytes):
            log = cls(onnx.load_model_from_string(file), None, inputs)
        else:
            log = cls(load_proto(Path(file)), Path(file).resolve().parent, inputs)
        log.makers = {name: node for node in log.model.graph.node for name in node.output if name}
        return log

    def graph(self) -> ir.Model:
        """The graph with its weights; those outside the file are read when they are used."""
        return graph_of(self.model, self.folder)

    @property
    def outputs(self) -> list[str]:
        """The file's outputs."""
        return [output.name for output in self.model.graph.output]

    def read(self, names: Collection[str]) -> None:
        """Runs the file and stores these tensors; the engine's fusions, which would remove some of them, are off."""
        wanted = [name for name in names if name not in self.values and name in self.makers]
        for name, array in self.arrays(wanted).items():
            self.values[name] = Value(tuple(array.shape), sample(array), array.dtype.kind == "f")

    def arrays(self, names: Collection[str]) -> dict[str, Array]:
        """Runs the file; returns those of these values that are tensors of numbers, whole."""
        if not names:
            return {}
        present = self.outputs
        outputs = self.model.graph.output
        outputs.extend(onnx.ValueInfoProto(name=name) for name in names if name not in present)
        with ExitStack() as stack:
            try:
                path = stack.enter_context(self._write_model())
            finally:
                del outputs[len(present) :]
            try:
                session = open_session(path, sess_options=_options_without_fusion())
                tensors = {o.name for o in session.get_outputs() if o.type.startswith("tensor(")}
                wanted = [name for name in names if name in tensors]
                found = dict(zip(wanted, run_session(session, self.inputs, wanted), strict=True))
            except Exception as error:
                if not type(error).__module__.startswith("onnxruntime"):
                    raise
                raise NotRun(
                    f"onnxruntime does not run the file on these inputs: {' '.join(str(error).split())}"
                ) from error
        return {name: array for name, array in found.items() if array.dtype.kind in "fiub"}

    @contextmanager
    def _write_model(self) -> Iterator[str]:
        """The model in a temporary file, beside its external weights: onnxruntime reads none through a link."""
        is_outside = any(tensor.data_location for tensor in self.model.graph.initializer)
        number, path = tempfile.mkstemp(prefix=".torch_onnx_compat_", dir=self.folder if is_outside else None)
        try:
            with open(number, "wb") as file:
                file.write(self.model.SerializeToString())
            yield path
        finally:
            os.unlink(path)

    def operands(self, name: str) -> list[str]:
        """The tensors from which a tensor is computed, including those that subgraphs capture from outside."""
        return [operand for operand in _operands(self.makers[name]) if operand in self.makers]

    def ancestors(self, names: Iterable[str]) -> set[str]:
        """These tensors, and all tensors from which they are computed."""
        found: set[str] = set()
        waiting = [name for name in names if name in self.makers]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting.extend(self.operands(name))
        return found

    def input_dependents(self) -> set[str]:
        """The tensors that depend on the file's inputs."""
        weights = {tensor.name for tensor in self.model.graph.initializer}
        known = {value.name for value in self.model.graph.input} - weights
        for name, node in self.makers.items():
            if any(operand in known for operand in _operands(node)):
                known.add(name)
        return known


def _options_without_fusion() -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return options


def _operands(node: onnx.NodeProto) -> list[str]:
    names = [name for name in node.input if name]
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            names += [name for inner in graph.node for name in _operands(inner)]
    return names


def module_of(node: onnx.NodeProto, modules: Collection[str]) -> str | None:
    """Path of the module that a node comes from; None where the file does not say.

    dynamo writes name scopes into the metadata; TorchScript writes ``/layer1/layer1.0/conv1/Conv`` as the node's name,
    where a child of a Sequential or ModuleList has its parent's name in front.

    Args:
        node: The node.
        modules: Paths of the model's modules.
    """
    metadata = {entry.key: entry.value for entry in node.metadata_props}
    scopes = re.findall(r"'([^']*)'", metadata.get(_SCOPES, ""))
    if scopes:
        return next((scope for scope in reversed(scopes) if scope in modules), None)
    for text in (node.name, *node.output):
        if text.startswith("/"):
            return module_path(text.split("/")[1:-1], modules)
    return None


def scope_of(node: onnx.NodeProto) -> str:
    """Path of the module that a node comes from, as far as the file alone shows it."""
    metadata = {entry.key: entry.value for entry in node.metadata_props}
    scopes = re.findall(r"'([^']*)'", metadata.get(_SCOPES, ""))
    if scopes:
        return next((scope for scope in reversed(scopes[:-1]) if scope), "")
    path: list[str] = []
    for part in node.name.split("/")[1:-1]:
        if path and part.startswith(f"{path[-1]}."):
            path.pop()
        path.append(part)
    return ".".join(path)
