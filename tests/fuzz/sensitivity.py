"""Plants faults in files that are right, and sees which of them the verification finds.

Each fault is one small change of a graph: a size, a branch, a weight, an attribute. How far it is really off is
measured beside the verification, on draws of its own, so that a fault that is not found is one of three: below
rounding, below the tolerance, or missed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import torch
import torch.nn.functional as F
from torch import nn

from torch_onnx_compat import export_compat
from torch_onnx_compat.check.cases import Cases
from torch_onnx_compat.check.compare import ATOL, RTOL, as_array
from torch_onnx_compat.check.options import Verify
from torch_onnx_compat.check.verify import run_session, verify
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.inputs.inputs import Inputs
from torch_onnx_compat.observe import Observation
from torch_onnx_compat.prepare import export_conditions, prepare
from torch_onnx_compat.session import open_session

ROUNDINGS = 10.0
"""Largest change by a fault, in errors of the right file, that counts as below rounding."""

PROBES = 3
"""Draws of values, and of sizes, on which a fault's effect is measured."""


# Models


class Lstm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(8, 12, num_layers=2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(24, 5)

    def forward(self, x):
        return self.head(self.rnn(x)[0])


class Decode(nn.Module):
    """A detector's head: boxes from offsets on a grid, scores, and the best class."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.SiLU())
        self.box, self.score = nn.Conv2d(16, 4, 1), nn.Conv2d(16, 6, 1)

    def forward(self, x):
        y = self.trunk(x)
        h, w = y.shape[2:]
        grid = torch.stack(torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij"), -1).reshape(-1, 2)
        box = self.box(y).flatten(2).transpose(1, 2)
        centre, size = grid.flip(1) + box[..., :2].sigmoid(), 4 * box[..., 2:].clamp(-4, 4).exp()
        score = self.score(y).flatten(2).transpose(1, 2).sigmoid()
        return torch.cat([centre - size / 2, centre + size / 2], -1), score.amax(-1), score.argmax(-1)


class Unet(nn.Module):
    """Down, up by Resize and by ConvTranspose, padded convolutions, skips by Concat."""

    def __init__(self) -> None:
        super().__init__()
        self.down1, self.down2 = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 12, 3, stride=2, padding=1)
        self.norm, self.up = nn.GroupNorm(3, 12), nn.ConvTranspose2d(20, 6, 2, 2)
        self.out = nn.Conv2d(6, 2, 1)

    def forward(self, x):
        a = F.leaky_relu(self.down1(x), 0.1)
        b = F.gelu(self.norm(self.down2(F.max_pool2d(a, 2))))
        b = F.interpolate(b, size=a.shape[2:], mode="bilinear", align_corners=False)
        return self.out(F.hardswish(self.up(torch.cat([a, b], 1))))


class Attention(nn.Module):
    """Token ids, positions, a causal mask, one encoder layer, logits."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.pos = nn.Embedding(50, 16), nn.Parameter(0.1 * torch.randn(1, 64, 16))
        self.layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, activation="gelu")
        self.head = nn.Linear(16, 50)

    def forward(self, ids):
        n = ids.shape[1]
        mask = torch.ones(n, n).tril() == 0
        x = self.embed(ids) + self.pos[:, :n]
        x = x + self.layer.self_attn(x, x, x, attn_mask=mask, need_weights=False)[0]
        x = self.layer.norm1(x)
        return self.head(self.layer.norm2(x + self.layer.linear2(F.gelu(self.layer.linear1(x))))).log_softmax(-1)


class Branches(nn.Module):
    """A decision by value, a clamp, and a selection by a mask."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(10, 10), nn.Linear(10, 10)

    def forward(self, x):
        y = self.a(x)
        if y.sum() > 0:
            y = torch.tanh(y) * 2
        z = torch.where(y > 0.2, self.b(y), y.neg())
        return z / z.pow(2).mean(-1, keepdim=True).add(1e-5).sqrt()


class Prompted(Attention):
    """The same with a mask of what is padded. Its example is one word over and over, without padding."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key = nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, ids, mask):
        x = self.embed(ids) + self.pos[:, : ids.shape[1]]
        scores = self.query(x) @ self.key(x).transpose(1, 2) / 4
        scores = torch.where(mask[:, None] != 0, scores, -1e4)
        return self.head(x + scores.softmax(-1) @ x)


class Policy(nn.Module):
    """Scores of moves, most of which are not allowed."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 40))

    def forward(self, x, legal):
        return self.layers(x).masked_fill(~legal, -1e8)


class KeyPoints(nn.Module):
    """Places in pixels, and beside them confidences."""

    def __init__(self) -> None:
        super().__init__()
        self.places, self.confidence = nn.Linear(12, 34), nn.Linear(12, 17)

    def forward(self, x):
        places = 320 + 200 * self.places(x).unflatten(-1, (17, 2)).tanh()
        return torch.cat([places, self.confidence(x).sigmoid()[..., None]], -1)


def with_statistics(model: nn.Module, *shape: int) -> nn.Module:
    """Sets the statistics of batch norms by a few batches, and makes scales differ."""
    for module in model.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            module.momentum = None
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias, 0.0, 0.1)
    for name, parameter in model.named_parameters():
        if name.endswith("gamma"):  # a block's scale, which begins at 1e-6: faults inside it would not show
            nn.init.uniform_(parameter, 0.5, 1.0)
    model.train()
    with torch.no_grad():
        for _ in range(3):
            model(torch.randn(8, *shape[1:]))
    return model.eval()


@dataclass(frozen=True)
class Subject:
    """A model to plant faults in."""

    name: str
    build: Callable[[], nn.Module]
    inputs: Callable[[], tuple[Any, ...]]
    dynamic: dict[str, dict[int, str]] = field(default_factory=dict)
    exporter: str = "torchscript"


def timm_model(name: str, *shape: int, **options: Any) -> Callable[[], nn.Module]:
    def build() -> nn.Module:
        import timm

        return with_statistics(timm.create_model(name, pretrained=False, **options), *shape)

    return build


def torchvision_model(name: str, *shape: int) -> Callable[[], nn.Module]:
    def build() -> nn.Module:
        import torchvision

        return with_statistics(getattr(torchvision.models, name)(weights=None), *shape)

    return build


def image(side: int) -> Callable[[], tuple[Any, ...]]:
    return lambda: (torch.randn(2, 3, side, side),)


BATCH = {"x": {0: "batch"}}
SIZES = {"x": {0: "batch", 2: "height", 3: "width"}}

SMALL = (
    Subject(
        "mlp",
        lambda: with_statistics(
            nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.GELU(), nn.Linear(32, 5), nn.Softmax(-1)), 1, 8
        ),
        lambda: (torch.randn(4, 8),),
        {"input": {0: "batch"}},
    ),
    Subject("lstm", Lstm, lambda: (torch.randn(3, 7, 8),), {"x": {0: "batch", 1: "time"}}),
    Subject("decode", lambda: with_statistics(Decode(), 1, 3, 32, 32), image(32), SIZES),
    Subject("unet", Unet, image(24), {"x": {0: "batch"}}),
    Subject("attention", Attention, lambda: (torch.randint(0, 50, (2, 9)),), {"ids": {0: "batch", 1: "time"}}),
    Subject("branches", Branches, lambda: (torch.randn(6, 10),), BATCH),
    Subject(
        "prompted",
        Prompted,
        lambda: (torch.ones(2, 9).long(), torch.ones(2, 9).long()),
        {"ids": {0: "batch"}, "mask": {0: "batch"}},
    ),
    Subject("policy", Policy, lambda: (torch.randn(4, 12), torch.rand(4, 40) < 0.3)),
    Subject("key points", KeyPoints, lambda: (torch.randn(4, 12),), BATCH),
)

LARGE = (
    Subject("resnet18", torchvision_model("resnet18", 1, 3, 64, 64), image(64), BATCH),
    Subject("resnet10t", timm_model("resnet10t", 1, 3, 64, 64), image(64), SIZES),
    Subject(
        "vit",
        timm_model("vit_tiny_patch16_224", 1, 3, 64, 64, img_size=64, depth=4),
        image(64),
        BATCH,
        exporter="dynamo",
    ),
    Subject("convnext", timm_model("convnext_atto", 1, 3, 64, 64), image(64), SIZES),
    Subject("mobilenet", timm_model("mobilenetv3_small_050", 1, 3, 64, 64), image(64), BATCH),
    Subject("regnet", timm_model("regnetx_002", 1, 3, 64, 64), image(64), BATCH),
)


@dataclass
class Right:
    """A right file, and what it is held against."""

    name: str
    model: onnx.ModelProto
    names: tuple[str, ...]
    cases: Cases
    how: Verify
    probes: list[tuple[Inputs, list[Any], list[Any]]]
    """Inputs, eager torch's outputs, and the right file's."""


def export_right(subject: Subject, seed: int = 0) -> Right:
    """Exports a model, and runs model and file on draws of this module's own."""
    torch.manual_seed(seed)
    model = subject.build().eval()
    args = subject.inputs()
    result = export_compat(model, args, dynamic=subject.dynamic or None, exporter=subject.exporter, verify=False)
    how = Verify()
    observation = Observation(prepare(model, args, dynamic=subject.dynamic or None))
    cases = Cases(observation, how)
    proto = result.model_proto
    names = tuple(value.name for value in proto.graph.output)
    right = Right(subject.name, proto, names, cases, how, [])
    session = open_session(proto.SerializeToString())
    for number, inputs in enumerate(draw_probes(observation.prepared.inputs)):
        with export_conditions():
            wanted = [as_array(o) for o in observation.reference(f"probe {number}", inputs).outputs]
        right.probes.append((inputs, wanted, run_session(session, inputs)))
    return right


def draw_probes(inputs: Inputs) -> Iterator[Inputs]:
    """The example, other values, and other sizes; nothing that the package's own draws decide."""
    generator = torch.Generator().manual_seed(99)

    def draw(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.is_floating_point():
            return torch.randn(tensor.shape, generator=generator)
        low, high = int(tensor.min()), int(tensor.max())
        if low == high:  # what people use is not one number
            low, high = 0, 1 if tensor.dtype is torch.bool else high + 3
        return torch.randint(low, high + 1, tensor.shape, generator=generator).to(tensor.dtype)

    yield inputs
    for _ in range(PROBES):
        yield replace(inputs, tensors=tuple(map(draw, inputs.tensors)))
    for name, size in inputs.sizes().items():
        for other in (size + 2, size + 32) if name != "batch" else (1, size + 3):
            grown = inputs.at_sizes({name: other})
            yield replace(grown, tensors=tuple(map(draw, grown.tensors)))


# Faults


@dataclass(frozen=True)
class Fault:
    """One change of one file."""

    kind: str
    place: str
    model: onnx.ModelProto


Place = tuple[str, Callable[[], None]]


def graphs(model: ir.Model) -> Iterator[ir.Graph]:
    """The graph of a model, and those inside its nodes."""
    yield model.graph
    for node in model.graph.all_nodes():
        for attribute in node.attributes.values():
            if attribute.type == ir.AttributeType.GRAPH:
                yield attribute.as_graph()


def weights(model: ir.Model) -> list[ir.Value]:
    """Initializers in floating point."""
    values = [v for graph in graphs(model) for v in graph.initializers.values()]
    return [v for v in values if v.const_value is not None and v.const_value.dtype == ir.DataType.FLOAT]


def set_weight(value: ir.Value, array: Any) -> None:
    assert value.const_value is not None
    value.const_value = ir.tensor(np.ascontiguousarray(array), name=value.name)


def off_channel(model: ir.Model, values: Any) -> Iterator[Place]:
    for weight in weights(model):
        array = weight.const_value.numpy()
        if array.ndim > 1 and array.size > 8:

            def change(weight=weight, array=array):
                channel = int(np.abs(array.reshape(len(array), -1)).sum(1).argmax())
                set_weight(
                    weight, np.concatenate([array[:channel], array[channel : channel + 1] * 1.05, array[channel + 1 :]])
                )

            yield str(weight.name), change


def off_bias(model: ir.Model, values: Any) -> Iterator[Place]:
    for weight in weights(model):
        array = weight.const_value.numpy()
        if array.ndim == 1 and array.size > 2:

            def change(weight=weight, array=array):
                moved = array.copy()
                moved[len(array) // 2] += max(0.1 * float(np.abs(array).max()), 0.01)
                set_weight(weight, moved)

            yield str(weight.name), change


def to_float16(model: ir.Model, values: Any) -> Iterator[Place]:
    for weight in weights(model):
        array = weight.const_value.numpy()
        most = np.finfo(np.float16).max
        rounded = array.clip(-most, most).astype(np.float16).astype(np.float32)
        if (rounded != array).any() and array.size > 1:
            yield str(weight.name), lambda w=weight, a=rounded: set_weight(w, a)


def set_attribute(node: ir.Node, name: str, value: Any) -> None:
    node.attributes[name] = ir.convenience.convert_attribute(name, value)


def attribute(node: ir.Node, name: str, default: Any = None) -> Any:
    found = node.attributes.get(name)
    return default if found is None else found.value


def change_attribute(ops: Sequence[str], name: str, changed: Callable[[ir.Node, Any], Any], default: Any = None) -> Any:
    """A kind of fault: another value of an attribute of these operators; None where there is no other."""

    def places(model: ir.Model, values: Any) -> Iterator[Place]:
        for node in model.graph.all_nodes():
            if node.op_type in ops:
                wrong = changed(node, attribute(node, name, default))
                if wrong is not None:
                    yield str(node.outputs[0].name), lambda n=node, w=wrong: set_attribute(n, name, w)

    return places


def shifted(node: ir.Node, pads: Any) -> list[int] | None:
    """Pads moved by one to the other end of the first axis that has any; the shape stays."""
    pads = list(pads or ())
    half = len(pads) // 2
    for axis in range(half):
        if pads[axis + half] > 0:
            pads[axis + half] -= 1
            pads[axis] += 1
            return pads
    return None


def swap_concat(model: ir.Model, values: Any) -> Iterator[Place]:
    for node in model.graph.all_nodes():
        shapes = [values[i.name].shape if i is not None and i.name in values else None for i in node.inputs]
        if node.op_type == "Concat" and len(node.inputs) > 1 and node.inputs[0] is not node.inputs[1]:
            a, b = node.inputs[:2]
            if shapes[0] is not None and shapes[0] != () and np.any(shapes[0]):

                def change(node=node, a=a, b=b):
                    node.replace_input_with(0, b)
                    node.replace_input_with(1, a)

                yield str(node.outputs[0].name), change


def as_constant(model: ir.Model, value: ir.Value, array: Any) -> None:
    """Lets everything that reads a value read a constant in its place."""
    name = f"{value.name}_frozen"
    constant = ir.Value(name=name, const_value=ir.tensor(array, name=name))
    constant.shape, constant.dtype = ir.Shape(array.shape), ir.DataType.from_numpy(array.dtype)
    model.graph.register_initializer(constant)
    ir.convenience.replace_all_uses_with(value, constant)


def freeze_size(model: ir.Model, values: Any) -> Iterator[Place]:
    for node in model.graph.all_nodes():
        out = node.outputs[0]
        if node.op_type in ("Shape", "Size") and out.name in values:
            yield str(out.name), lambda o=out: as_constant(model, o, values[o.name])


def freeze_branch(model: ir.Model, values: Any) -> Iterator[Place]:
    for node in model.graph.all_nodes():
        if node.op_type in ("Where", "If") and node.inputs[0] is not None and node.inputs[0].name in values:
            cond = node.inputs[0]
            if cond.const_value is None:

                def change(node=node, cond=cond):
                    name = f"{cond.name}_{node.op_type}_frozen"
                    array = values[cond.name]
                    if node.op_type == "Where":
                        array = np.array(bool(array.mean() > 0.5))
                    constant = ir.Value(name=name, const_value=ir.tensor(array, name=name))
                    constant.shape, constant.dtype = ir.Shape(array.shape), ir.DataType.BOOL
                    model.graph.register_initializer(constant)
                    node.replace_input_with(0, constant)

                yield f"{node.op_type} {node.outputs[0].name}", change


OTHERS = {"Relu": ("LeakyRelu", {"alpha": 0.01}), "Sigmoid": ("HardSigmoid", {}), "Tanh": ("Softsign", {})} | {
    "HardSwish": ("HardSigmoid", {}),
    "Erf": ("Tanh", {}),
    "Softmax": ("LogSoftmax", {}),
    "Max": ("Sum", {}),
}


def other_operator(model: ir.Model, values: Any) -> Iterator[Place]:
    """Another operator of the same shape: an activation near the right one, a function in a like form."""
    for node in model.graph.all_nodes():
        if node.op_type == "Gelu":
            yield str(node.outputs[0].name), lambda n=node: set_attribute(n, "approximate", "tanh")
        elif node.op_type in OTHERS:

            def change(node=node):
                kind, attributes = OTHERS[node.op_type]
                kept = {"axis": attribute(node, "axis")} if "axis" in node.attributes else {}
                made = ir.node(kind, list(node.inputs), {**attributes, **kept}, num_outputs=1)
                made.outputs[0].name = f"{node.outputs[0].name}_other"
                node.graph.insert_after(node, made)
                ir.convenience.replace_all_uses_with(node.outputs[0], made.outputs[0], replace_graph_outputs=True)

            yield f"{node.op_type} {node.outputs[0].name}", change


def larger_epsilon(model: ir.Model, values: Any) -> Iterator[Place]:
    ops = ("BatchNormalization", "LayerNormalization", "InstanceNormalization", "GroupNormalization")
    yield from change_attribute(ops, "epsilon", lambda _, e: e * 10, 1e-5)(model, values)
    for weight in weights(model):
        array = weight.const_value.numpy()
        if array.size == 1 and 0 < float(array.reshape(())) < 1e-3:
            yield str(weight.name), lambda w=weight, a=array: set_weight(w, a * 10)


def other_axis(node: ir.Node, axis: Any) -> int | None:
    if axis is None:
        return None
    return -2 if axis == -1 else -1


KINDS: dict[str, Callable[[ir.Model, Any], Iterator[Place]]] = {
    "size frozen": freeze_size,
    "branch frozen": freeze_branch,
    "channel 5 % off": off_channel,
    "bias off": off_bias,
    "padding": change_attribute(("Conv", "MaxPool", "AveragePool", "ConvTranspose"), "pads", shifted),
    "axis": change_attribute(("Softmax", "LogSoftmax", "ArgMax"), "axis", other_axis, -1),
    "concat swapped": swap_concat,
    "epsilon x 10": larger_epsilon,
    "other operator": other_operator,
    "float16 weight": to_float16,
    "resize mode": change_attribute(("Resize",), "mode", lambda _, m: "nearest" if m != "nearest" else "linear"),
    "resize grid": change_attribute(
        ("Resize",),
        "coordinate_transformation_mode",
        lambda _, m: "asymmetric" if m != "asymmetric" else "half_pixel",
        "half_pixel",
    ),
}


def inner_values(proto: onnx.ModelProto, inputs: Inputs) -> dict[str, Any]:
    """The graph's values on some inputs, by name."""
    wider = onnx.ModelProto()
    wider.CopyFrom(proto)
    known = {v.name for v in wider.graph.output}
    names = [o for n in wider.graph.node for o in n.output if o and o not in known]
    wider.graph.output.extend(onnx.ValueInfoProto(name=n) for n in names)
    session = open_session(wider.SerializeToString())
    values = {v.name: a for v, a in zip(wider.graph.output, run_session(session, inputs), strict=True)}
    return {**{onnx_t.name: onnx.numpy_helper.to_array(onnx_t) for onnx_t in proto.graph.initializer}, **values}


def plant(right: Right, per_kind: int) -> Iterator[Fault]:
    """Faults of every kind that a graph has a place for; places are spread over the graph."""
    values = inner_values(right.model, right.probes[0][0])
    for kind, places in KINDS.items():
        count = len(list(places(ir.from_proto(right.model), values)))
        for number in np.unique(np.linspace(0, count - 1, per_kind).round().astype(int)) if count else ():
            model = ir.from_proto(right.model)
            place, change = list(places(model, values))[number]
            change()
            yield Fault(kind, place, ir.to_proto(model))


# Verdicts


@dataclass(frozen=True)
class Verdict:
    """What became of one fault."""

    model: str
    fault: Fault
    found: bool
    change: float
    """Largest change of an output by the fault, in errors of the right file."""
    tolerances: float
    """Largest distance from eager torch, in tolerances of the verification."""
    why: str = ""

    @property
    def word(self) -> str:
        """Found, below rounding, below tolerance, or MISSED."""
        if self.found:
            return "found"
        if self.change <= ROUNDINGS:
            return "below rounding"
        return "below tolerance" if self.tolerances <= 1 else "MISSED"


def judge(right: Right, fault: Fault) -> Verdict:
    """Verifies a file with a fault, and measures the fault."""
    found, why = False, ""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(fault.model.SerializeToString())
        try:
            with export_conditions():
                rows = verify(path, right.names, right.cases, right.how)
            why = "; ".join(dict.fromkeys(row.detail for row in rows if row.detail))
        except VerificationError as error:
            found, why = True, str(error)
    change, tolerances = measure(right, fault)
    return Verdict(right.name, fault, found, change, tolerances, why)


def measure(right: Right, fault: Fault) -> tuple[float, float]:
    """The fault's largest effect in errors of the right file, and in tolerances; infinite where the file fails."""
    change = tolerances = 0.0
    try:
        session = open_session(fault.model.SerializeToString())
    except Exception:  # whatever onnxruntime raises, the fault is found
        return np.inf, np.inf
    for inputs, wanted, right_outputs in right.probes:
        outputs = None
        with suppress(Exception):
            outputs = run_session(session, inputs)
        for number, (want, own) in enumerate(zip(wanted, right_outputs, strict=True)):
            found = None if outputs is None else outputs[number]
            if found is None or found.shape != want.shape:
                return np.inf, np.inf
            one, other = _distances(found, own, want)
            change, tolerances = max(change, one), max(tolerances, other)
    return change, tolerances


def _distances(found: Any, own: Any, want: Any) -> tuple[float, float]:
    if want.dtype.kind != "f":
        off = np.inf if (found != want).any() and not (own != want).any() else 0.0
        return off, off
    a, b, c = (array.astype(np.float64) for array in (found, own, want))
    scale = float(np.abs(c).max(initial=0.0)) or 1.0
    rounding = max(float(np.abs(b - c).max(initial=0.0)), 2.0**-24 * scale)
    magnitudes = np.abs(c[c != 0])
    typical = float(np.median(magnitudes)) if magnitudes.size else 1.0
    allowed = RTOL[torch.float32] * np.abs(c) + ATOL[torch.float32] * typical
    off = np.nan_to_num(np.abs(a - c) / allowed, nan=np.inf)
    return float(np.nan_to_num(np.abs(a - b), nan=np.inf).max(initial=0.0)) / rounding, float(off.max(initial=0.0))


def run(subjects: Sequence[Subject], per_kind: int) -> Iterator[Verdict]:
    """Plants and judges faults in every model; the right file itself comes first and must pass.

    Raises:
        AssertionError: A right file is refused.
    """
    for subject in subjects:
        right = export_right(subject)
        unchanged = judge(right, Fault("none", "", right.model))
        assert not unchanged.found, f"{subject.name}: the right file is refused: {unchanged.why}"
        for fault in plant(right, per_kind):
            yield judge(right, fault)


def table(verdicts: Sequence[Verdict]) -> str:
    """Counts by kind of fault, as Markdown."""
    words = ("found", "below rounding", "below tolerance", "MISSED")
    lines = ["| fault | planted | " + " | ".join(words) + " |", "| --- " * 6 + "|"]
    for kind in (*KINDS, "all"):
        counted = [v.word for v in verdicts if kind in (v.fault.kind, "all")]
        if counted:
            lines.append(f"| {kind} | {len(counted)} | " + " | ".join(str(counted.count(w)) for w in words) + " |")
    return "\n".join(lines)
