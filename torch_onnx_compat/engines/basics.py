"""Properties of an engine beside its operators: opsets, IR versions, dynamic axes, nodes that depend on constants."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper

from torch_onnx_compat.catalogue.entry import MIN_OPSET
from torch_onnx_compat.engines.compare import judge, reference
from torch_onnx_compat.engines.process import EngineProcess
from torch_onnx_compat.targets.target import PASSED, Dynamic

_HIGHEST = 23
_HIGHEST_IR = 13
_BOUNDS = {
    name: onnx.numpy_helper.from_array(np.array([number])) for name, number in (("start", 0), ("end", 3), ("axis", 1))
}


def opsets(process: EngineProcess) -> tuple[int, int]:
    """The lowest and the highest opset that the engine accepts.

    An engine that accepts none fails for another reason; it counts as accepting all.
    """
    accepted = [opset for opset in range(MIN_OPSET, _HIGHEST + 1) if _takes(process, opset, 6)]
    return (accepted[0], accepted[-1]) if accepted else (MIN_OPSET, _HIGHEST)


def ir_version(process: EngineProcess, opset: int) -> int:
    """The highest IR version that the engine accepts."""
    return max((v for v in range(6, _HIGHEST_IR + 1) if _takes(process, opset, v)), default=_HIGHEST_IR)


def _takes(process: EngineProcess, opset: int, ir_version: int) -> bool:
    model = _pointwise_model([1, 3, 4, 4], opset, ir_version)
    return _runs(process, model, (1, 3, 4, 4))


def dynamic_support(process: EngineProcess) -> Dynamic:
    """Whether the engine runs a dynamic batch and dynamic height and width; partly where it runs one of them."""
    batch = _pointwise_model(["n", 3, 8, 8], 17, 8)
    image = _pointwise_model([1, 3, "h", "w"], 17, 8)
    accepted = [
        all(_runs(process, model, shape) for shape in shapes)
        for model, shapes in ((batch, ((1, 3, 8, 8), (3, 3, 8, 8))), (image, ((1, 3, 8, 8), (1, 3, 6, 10))))
    ]
    return "yes" if all(accepted) else "partly" if any(accepted) else "no"


def folds(process: EngineProcess) -> bool:
    """Whether the engine runs nodes that depend on constants alone."""
    return _runs(process, _constant_branch_model(), (1, 3, 8, 8))


def _constant_branch_model() -> bytes:
    """A model that adds a Conv of the input and a Conv of a constant branch, such as position embeddings.

    Some channels of both are sliced out; Constant nodes hold the bounds.
    """
    image = np.linspace(-1, 1, 192, dtype=np.float32).reshape(1, 3, 8, 8)
    weight = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3, 1, 1)
    nodes = [
        helper.make_node("Sin", ["image"], ["embedding"]),
        helper.make_node("Conv", ["embedding", "w"], ["projected"]),
        helper.make_node("Conv", ["x", "w"], ["c"]),
        *(helper.make_node("Constant", [], [name], value=tensor) for name, tensor in _BOUNDS.items()),
        helper.make_node("Slice", ["c", *_BOUNDS], ["some"]),
        helper.make_node("Slice", ["projected", *_BOUNDS], ["others"]),
        helper.make_node("Add", ["some", "others"], ["y"]),
    ]
    shapes = {"x": [1, 3, 8, 8], "y": [1, 3, 8, 8]}
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items())
    weights = [onnx.numpy_helper.from_array(array, name) for name, array in (("image", image), ("w", weight))]
    graph = helper.make_graph(nodes, "beside_constants", [x], [y], weights)
    imports = [helper.make_opsetid("", 17)]
    return bytes(helper.make_model(graph, opset_imports=imports, ir_version=8).SerializeToString())


def _pointwise_model(shape: Sequence[int | str], opset: int, ir_version: int) -> bytes:
    """A model of a 1 x 1 Conv and a Relu."""
    weight = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3, 1, 1)
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["c"]), helper.make_node("Relu", ["c"], ["y"])],
        "pointwise",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [shape[0], 4, *shape[2:]])],
        [onnx.numpy_helper.from_array(weight, "w")],
    )
    imports = [helper.make_opsetid("", opset)]
    return bytes(helper.make_model(graph, opset_imports=imports, ir_version=ir_version).SerializeToString())


def _runs(process: EngineProcess, model: bytes, shape: tuple[int, ...]) -> bool:
    feeds = {"x": np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)}
    outcome = process.run(model, feeds, ["y"])
    right = onnx.load_from_string(model)
    right.ir_version, right.opset_import[0].version = 8, 17  # onnxruntime need not accept what the engine accepts
    return judge(outcome, reference(right.SerializeToString(), feeds), (1e-3, 1e-3))[0] in PASSED
