"""How to run a file, in a few lines for each engine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath

import onnx

from torch_onnx_compat.request import METADATA_PREFIX
from torch_onnx_compat.session import EXACT_PRODUCTS
from torch_onnx_compat.shape_ranges import ShapeRange, tensorrt_command

_TYPES: dict[int, str] = {
    onnx.TensorProto.FLOAT: "float32",
    onnx.TensorProto.UINT8: "uint8",
    onnx.TensorProto.INT8: "int8",
    onnx.TensorProto.INT32: "int32",
    onnx.TensorProto.INT64: "int64",
    onnx.TensorProto.BOOL: "bool",
    onnx.TensorProto.FLOAT16: "float16",
    onnx.TensorProto.DOUBLE: "float64",
}

_ONNXRUNTIME = """import numpy as np
import onnxruntime

{options}session = onnxruntime.InferenceSession("{file}", {passed}providers=["CPUExecutionProvider"])
outputs = session.run(None, {{{feeds}}})
"""

_EXACT_PRODUCTS = f"""options = onnxruntime.SessionOptions()
options.add_session_config_entry("{EXACT_PRODUCTS[0]}", "{EXACT_PRODUCTS[1]}")  # exact sums on x86 without VNNI
"""

_COREML = """import numpy as np
import onnxruntime

session = onnxruntime.InferenceSession("{file}", providers=["CoreMLExecutionProvider", "CPUExecutionProvider"])
outputs = session.run(None, {{{feeds}}})
"""

_QNN = """import numpy as np
import onnxruntime

npu = ("QNNExecutionProvider", {{"backend_path": "libQnnHtp.so"}})
session = onnxruntime.InferenceSession("{file}", providers=[npu])
outputs = session.run(None, {{{feeds}}})
"""

_WEB = """import * as ort from "onnxruntime-web";

const session = await ort.InferenceSession.create("{file}");
const outputs = await session.run({{
{tensors}
}});
"""

_OPENCV = """import cv2
import numpy as np

net = cv2.dnn.readNetFromONNX("{file}"{engine})
{setters}
outputs = net.forward(net.getUnconnectedOutLayersNames())
"""

_OPENVINO = """import numpy as np
import openvino

network = openvino.Core().read_model("{file}")
{bounds}model = openvino.compile_model(network, "CPU")
outputs = model({{{feeds}}})
"""


_TRACT = """import numpy as np
import tract

model = tract.onnx().load("{file}").into_model().into_runnable()
outputs = [tensor.to_numpy() for tensor in model.run([{arrays}])]
"""

_MNN = """import subprocess

import MNN.expr as F
import MNN.nn
import numpy as np

convert = ["mnnconvert", "-f", "ONNX", "--modelFile", "{file}", "--MNNModel", "{stem}.mnn", "--bizCode", "me"]
subprocess.run(convert, check=True)
net = MNN.nn.load_module_from_file("{stem}.mnn", {inputs}, {outputs})
arrays = [{arrays}]
kinds = {{"float32": F.float, "int32": F.int, "uint8": F.uint8, "int8": F.int8}}
found = net.onForward([F.const(a, list(a.shape), F.NCHW, kinds[str(a.dtype)]) for a in arrays])
outputs = [F.convert(v, F.NCHW).read() if len(v.shape) > 1 else v.read() for v in found]
"""

_NCNN = """import subprocess

import ncnn
import numpy as np

subprocess.run(["pnnx", "{file}", "fp16=0"], check=True)  # writes {pnnx}.ncnn.param, .bin, and {pnnx}_ncnn.py
net = ncnn.Net()
net.load_param("{pnnx}.ncnn.param")
net.load_model("{pnnx}.ncnn.bin")
arrays = [{arrays}]
with net.create_extractor() as run:
    for name, array in zip(net.input_names(), arrays):
        run.input(name, ncnn.Mat(array, batch_index=0).clone())  # {pnnx}_ncnn.py says which axis is the batch
    outputs = [np.array(run.extract(name)[1].numpy(batch_index=0)) for name in net.output_names()]
"""

_RKNN = """import numpy as np
from rknn.api import RKNN

rknn = RKNN()
rknn.config(target_platform="rk3588")
rknn.load_onnx("{file}")
rknn.build(do_quantization=False)
rknn.export_rknn("{stem}.rknn")  # for the board
rknn.init_runtime()  # the simulator; target="rk3588" runs it on a board that is connected
outputs = rknn.inference(inputs=[{arrays}], data_format={layouts})
rknn.release()
"""

_TFLITE = """import subprocess

import numpy as np
from ai_edge_litert.interpreter import Interpreter

keep = {inputs}  # these keep ONNX's order of axes
subprocess.run(["onnx2tf", "-i", "{file}", "-o", "{stem}_tflite", "-kat", *keep, "-nuo"], check=True)
run = Interpreter("{stem}_tflite/{stem}_float32.tflite").get_signature_runner()
outputs = run(**{{{feeds}}})
"""

_TINYGRAD = """import numpy as np
from tinygrad import Tensor  # on a CPU, with DEV=CPU in the environment, it needs clang
from tinygrad.nn.onnx import OnnxRunner

model = OnnxRunner("{file}")
feeds = {{{feeds}}}
outputs = {{name: value.numpy() for name, value in model({{k: Tensor(a) for k, a in feeds.items()}}).items()}}
"""

_TVM = """import numpy as np
import onnx
import tvm
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

module = from_onnx(onnx.load("{file}"))
machine = relax.VirtualMachine(tvm.compile(module, target=tvm.target.Target("llvm")), tvm.cpu())
found = machine["main"](*[tvm.runtime.tensor(a) for a in ({arrays},)])
outputs = [value.numpy() for value in {found}]
"""

_TEMPLATES = {
    "onnxruntime-web": _WEB,
    "onnxruntime": _ONNXRUNTIME,
    "coreml": _COREML,
    "qnn": _QNN,
    "opencv": _OPENCV,
    "openvino": _OPENVINO,
    "tract": _TRACT,
    "mnn": _MNN,
    "ncnn": _NCNN,
    "rknn": _RKNN,
    "tflite": _TFLITE,
    "tinygrad": _TINYGRAD,
    "tvm": _TVM,
}
"""By the beginning of a target's name, the longer first; a target of the caller's own gets onnxruntime's."""

_LANGUAGES = {"onnxruntime-web": "js", "tensorrt": "sh"}


@dataclass(frozen=True)
class _Input:
    name: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def array(self) -> str:
        return f"np.zeros({self.shape}, np.{self.dtype})"

    @property
    def tensor(self) -> str:
        """The same for onnxruntime-web, whose 64-bit integers are BigInts."""
        count = 1
        for size in self.shape:
            count *= size
        kind = {"int64": "BigInt64Array", "bool": "Uint8Array"}.get(
            self.dtype, self.dtype.replace("uint", "Uint").replace("int", "Int").replace("float", "Float") + "Array"
        )
        return f'new ort.Tensor("{self.dtype}", new {kind}({count}), {list(self.shape)})'


def snippet(
    target: str, file: str, model: onnx.ModelProto | None, ranges: Mapping[str, ShapeRange] | None = None
) -> str:
    """Code that runs a file, or the command line that builds it; both run as they stand.

    Args:
        target: Name of the engine.
        file: Name of the file.
        model: The file's graph, for the names and shapes of its inputs.
        ranges: The shapes of the inputs that have dynamic axes; where they are not known, the code has size 1 there.
    """
    known = ranges or {}
    inputs = _inputs(model, known) if model is not None else []
    command = tensorrt_command(target, file, known, [i.name for i in inputs])
    if command is not None:
        return f"{command}\n"
    template = next((text for name, text in _TEMPLATES.items() if target.startswith(name)), _ONNXRUNTIME)
    outputs = [value.name for value in model.graph.output] if model is not None else []
    stem = PurePath(file).stem
    options = _EXACT_PRODUCTS if model is not None and _adds_up_bytes(model.graph) else ""
    return template.format(
        file=file,
        stem=stem,
        pnnx=stem.replace(".", "_").replace("-", "_"),
        engine=", engine=cv2.dnn.ENGINE_CLASSIC" if target.startswith("opencv-classic") else "",
        feeds=", ".join(f'"{i.name}": {i.array}' for i in inputs),
        arrays=", ".join(i.array for i in inputs),
        setters="\n".join(f'net.setInput({i.array}, "{i.name}")' for i in inputs),
        tensors="\n".join(f'  "{i.name}": {i.tensor},' for i in inputs),
        bounds=_bounds(inputs, known),
        options=options,
        passed="options, " if options else "",
        layouts=["nchw"] * len(inputs),
        inputs=json.dumps([i.name for i in inputs]),
        outputs=json.dumps(outputs),
        found="found" if len(outputs) > 1 else "[found]",
    )


def _adds_up_bytes(graph: onnx.GraphProto) -> bool:
    """Whether a graph has products of eight-bit numbers, or pairs of which onnxruntime makes such."""
    kinds = {node.op_type for node in graph.node}
    bodies = (a.g for node in graph.node for a in node.attribute if a.type == onnx.AttributeProto.GRAPH)
    is_here = any(part in kind for kind in kinds for part in ("Quantize", "QLinear", "Integer"))
    return is_here or any(map(_adds_up_bytes, bodies))


def language(target: str) -> str:
    """The language of the code for a target: python, js or sh."""
    return next((code for name, code in _LANGUAGES.items() if target.startswith(name)), "python")


def _inputs(model: onnx.ModelProto, known: Mapping[str, ShapeRange]) -> list[_Input]:
    weights = {tensor.name for tensor in model.graph.initializer}
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    sizes: dict[str, int] = json.loads(metadata.get(f"{METADATA_PREFIX}sizes", "{}"))
    return [_input(value, sizes, known.get(value.name)) for value in model.graph.input if value.name not in weights]


def _input(value: onnx.ValueInfoProto, sizes: dict[str, int], shapes: ShapeRange | None) -> _Input:
    """An input of the usual shape, else at the example's sizes, which the metadata tell; else 1 on a dynamic axis."""
    kind = value.type.tensor_type
    example = tuple(dim.dim_value or sizes.get(dim.dim_param, 1) for dim in kind.shape.dim)
    shape = example if shapes is None else shapes.usual
    return _Input(value.name, shape, _TYPES.get(kind.elem_type, "float32"))


def _bounds(inputs: list[_Input], known: Mapping[str, ShapeRange]) -> str:
    """The line that tells OpenVINO the bounds of each dynamic axis; empty where none is known."""
    shapes = ", ".join(f'"{i.name}": {_bounded(known[i.name])}' for i in inputs if i.name in known)
    return f"network.reshape({{{shapes}}})\n" if shapes else ""


def _bounded(shapes: ShapeRange) -> str:
    """The shape of an input as OpenVINO takes it, with the bounds of each dynamic axis."""
    pairs = zip(shapes.least, shapes.most, strict=True)
    return f"[{', '.join(str(a) if a == b else f'({a}, {b})' for a, b in pairs)}]"
