"""Faults planted in files of both exporters are found where they were planted; healthy files are blamed for nothing."""

import numpy as np
import onnx
import pytest
import torch
import torch.nn.functional as F
from onnx import helper, numpy_helper
from torch import nn

from torch_onnx_compat import export_compat
from torch_onnx_compat.check.eager_log import Step
from torch_onnx_compat.check.file_log import FileLog, Value, module_of
from torch_onnx_compat.check.localise import localise
from torch_onnx_compat.check.matching import counterpart


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.act = nn.LeakyReLU(0.1)

    def forward(self, x):
        y = self.act(self.bn1(self.conv1(x)))
        return self.act(self.bn2(self.conv2(y)) + x)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.layers = nn.Sequential(Residual(8), Residual(8))
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.fc = nn.Linear(8, 5)

    def forward(self, x):
        x = self.pool(self.layers(self.stem(x)))
        return self.fc(x.mean((2, 3)))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        scores = (q @ k.transpose(-1, -2)) * 0.35
        y = scores.softmax(-1) @ v
        return self.proj(y.transpose(1, 2).reshape(b, n, c))


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attn = Attention(width, 4)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, 16, 4, 4)
        self.token = nn.Parameter(torch.randn(1, 1, 16))
        self.blocks = nn.ModuleList([Block(16), Block(16)])
        self.norm = nn.LayerNorm(16)
        self.head = nn.Linear(16, 5)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


class Segmenter(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.GroupNorm(2, 8)
        self.mid = nn.Conv2d(8, 8, 3, padding=1)
        self.pool = nn.AvgPool2d(2, ceil_mode=False)
        self.up = nn.Upsample(scale_factor=2)
        self.crop = Crop()
        self.out = nn.Conv2d(16, 2, 1)

    def forward(self, x):
        a = F.silu(self.norm(self.down(x)))
        b = self.up(torch.tanh(self.mid(self.pool(a))))
        return self.out(self.crop(torch.cat([a, b], 1)))


class Crop(nn.Module):
    def forward(self, x):
        return x[:, :, 2:-2, 2:-2]


class Listener(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(4, 8, 5, padding=2)
        self.difference = Difference()
        self.norm = nn.LayerNorm(8)
        self.loud = Loud()
        self.fc = nn.Linear(8, 3)

    def forward(self, x):
        x = self.difference(torch.relu(self.conv(x)))
        return self.fc(self.loud(self.norm(x.transpose(1, 2))))


class Difference(nn.Module):
    def forward(self, x):
        return x[:, :, 1:] - 0.97 * x[:, :, :-1]


class Loud(nn.Module):
    def forward(self, x):
        return (x * 3e4).abs().sqrt().mean(1)


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU6(), nn.Conv2d(8, 10, 3, 2, 1))
        self.decode = Decode()

    def forward(self, x):
        return self.decode(self.body(x))


class Decode(nn.Module):
    def __init__(self):
        super().__init__()
        y, x = torch.meshgrid(torch.arange(4.0), torch.arange(4.0), indexing="ij")
        self.register_buffer("grid", torch.stack([x, y], -1))

    def forward(self, x):
        b = x.shape[0]
        x = x.view(b, 2, 5, 4, 4).permute(0, 1, 3, 4, 2)
        place = (x[..., :2].sigmoid() * 2 + self.grid) * 4.5
        size = x[..., 2:4].exp() * 8
        return torch.cat([place, size, x[..., 4:].sigmoid()], -1).flatten(1, 3)


IMAGE, SOUND = (2, 3, 16, 16), (2, 4, 20)
MODELS = {
    "classifier": (Classifier, IMAGE),
    "transformer": (Transformer, IMAGE),
    "segmenter": (Segmenter, IMAGE),
    "listener": (Listener, SOUND),
    "detector": (Detector, IMAGE),
}


def make(name):
    torch.manual_seed(1)
    build, shape = MODELS[name]
    model = build().eval()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.2)
            module.running_var.uniform_(0.5, 2)
    for parameter in model.parameters():
        parameter.data.add_(0.1 * torch.randn_like(parameter))
    return model, (torch.randn(shape),)


@pytest.fixture(scope="module")
def files():
    return {}


def exported(files, name, exporter):
    if (name, exporter) not in files:
        model, args = make(name)
        result = export_compat(model, args, exporter=exporter, verify=False)
        files[name, exporter] = result.model_bytes
    return onnx.load_model_from_string(files[name, exporter])


# Faults: each takes the nodes of one operator in one module and breaks one


class Graph:
    def __init__(self, proto, modules):
        self.graph = proto.graph
        self.modules = modules
        self.weights = {tensor.name: tensor for tensor in proto.graph.initializer}
        for node in proto.graph.node:
            if node.op_type == "Constant":
                self.weights[node.output[0]] = node.attribute[0].t

    def node(self, path, *operators, index=0):
        paths = (path, path.replace("conv", "bn"))  # one node for both, called after either
        found = [
            node for node in self.graph.node if node.op_type in operators and module_of(node, self.modules) in paths
        ]
        assert found, [(n.op_type, module_of(n, self.modules)) for n in self.graph.node]
        return found[index]

    def change(self, node, position, function):
        """Gives a node a changed copy of a constant operand."""
        old = self.weights[node.input[position]]
        array = np.array(function(numpy_helper.to_array(old).copy()))
        name = f"planted_{len(self.graph.initializer)}"
        self.graph.initializer.append(numpy_helper.from_array(array.astype(numpy_helper.to_array(old).dtype), name))
        node.input[position] = name

    def constant(self, node):
        return next(i for i, name in enumerate(node.input) if name in self.weights)

    def attribute(self, node, name, value):
        for attribute in list(node.attribute):
            if attribute.name == name:
                node.attribute.remove(attribute)
        node.attribute.append(helper.make_attribute(name, value))

    def after(self, node, *operators):
        """Puts nodes (operator, attributes) behind a node."""
        position = list(self.graph.node).index(node) + 1
        name = node.output[0]
        node.output[0] = last = f"{name}_planted"
        for step, (operator, attributes) in enumerate(operators):
            output = name if step == len(operators) - 1 else f"{name}_planted_{step}"
            new = helper.make_node(operator, [last], [output], name=f"{node.name}_{step}", **attributes)
            new.metadata_props.extend(node.metadata_props)
            self.graph.node.insert(position + step, new)
            last = output


def scale_channel(array):
    array[1] *= 1.4
    return array


def weight(path, *operators, function=scale_channel):
    def plant(graph):
        node = graph.node(path, *operators)
        graph.change(node, graph.constant(node), function)

    return plant


def attribute(path, operator, name, value, index=0):
    return lambda graph: graph.attribute(graph.node(path, operator, index=index), name, value)


def operator(path, old, new):
    def plant(graph):
        node = graph.node(path, old)
        node.op_type = new
        for attribute in list(node.attribute):
            if attribute.name not in ("kernel_shape", "strides"):
                node.attribute.remove(attribute)

    return plant


def half(path, *operators):
    def plant(graph):
        types = onnx.TensorProto
        graph.after(graph.node(path, *operators), ("Cast", {"to": types.FLOAT16}), ("Cast", {"to": types.FLOAT}))

    return plant


def swapped_inputs(path, name):
    def plant(graph):
        node = graph.node(path, name)
        one, other = node.input[:2]
        node.input[0], node.input[1] = other, one

    return plant


def shifted_slice(path, index=0):
    """The same length, one place further on."""

    def plant(graph):
        node = graph.node(path, "Slice", index=index)
        graph.change(node, 1, lambda a: a + 1)
        graph.change(node, 2, lambda a: np.where(a > 2**31, a, np.where(a == -1, 2**40, a + 1)))

    return plant


def turned(path, permutation, index=0):
    return lambda graph: graph.attribute(graph.node(path, "Transpose", index=index), "perm", permutation)


def shifted_grid(graph):
    graph.change(graph.node("decode", "Add"), graph.constant(graph.node("decode", "Add")), lambda a: a + 0.5)


def turned_scores(graph):
    """Swaps the rows and columns of the attention's result: of one size only where the heads are as many."""
    node = graph.node("blocks.1.attn", "Softmax")
    graph.after(node, ("Transpose", {"perm": [0, 1, 3, 2]}))


FAULTS = [
    ("classifier", "weight of a fused convolution", weight("layers.0.conv1", "Conv"), "layers.0.conv1"),
    ("classifier", "weight of the last block", weight("layers.1.conv2", "Conv"), "layers.1.conv2"),
    ("classifier", "padding", attribute("layers.1.conv1", "Conv", "pads", [0, 0, 2, 2]), "layers.1.conv1"),
    ("classifier", "slope", attribute("layers.0.act", "LeakyRelu", "alpha", 0.2), "layers.0.act"),
    ("classifier", "pool's padding", attribute("pool", "MaxPool", "pads", [0, 0, 2, 2]), "pool"),
    ("classifier", "row of a linear layer", weight("fc", "Gemm", "MatMul"), "fc"),
    ("transformer", "eps", attribute("blocks.1.norm1", "LayerNormalization", "epsilon", 1e-2), "blocks.1.norm1"),
    ("transformer", "small eps", attribute("blocks.0.norm2", "LayerNormalization", "epsilon", 1e-3), "blocks.0.norm2"),
    ("transformer", "softmax axis", attribute("blocks.0.attn", "Softmax", "axis", 2), "blocks.0.attn"),
    ("transformer", "transposed scores", turned_scores, "blocks.1.attn"),
    ("transformer", "weight of an MLP", weight("blocks.1.mlp.2", "MatMul", "Gemm"), "blocks.1.mlp.2"),
    ("transformer", "baked scale", weight("blocks.0.attn", "Mul", function=lambda a: a * 1.1), "blocks.0.attn"),
    ("transformer", "weight of the patches", weight("patch", "Conv"), "patch"),
    ("segmenter", "eps of a group norm", attribute("norm", "InstanceNormalization", "epsilon", 1e-2), "norm"),
    ("segmenter", "order of a concatenation", swapped_inputs("", "Concat"), ""),
    ("segmenter", "crop", shifted_slice("crop"), "crop"),
    ("segmenter", "activation", operator("", "Tanh", "Softsign"), ""),
    ("segmenter", "pool", operator("pool", "AveragePool", "MaxPool"), "pool"),
    ("listener", "kernel", weight("conv", "Conv"), "conv"),
    ("listener", "slice", shifted_slice("difference", index=1), "difference"),
    ("listener", "baked number", weight("difference", "Mul", function=lambda a: a * 0.9), "difference"),
    ("listener", "half precision overflows", half("loud", "Mul"), "loud"),
    ("listener", "weight of the norm", weight("norm", "LayerNormalization"), "norm"),
    ("detector", "baked grid", shifted_grid, "decode"),
    ("detector", "transposed axes", turned("decode", [0, 1, 4, 3, 2]), "decode"),
    ("detector", "sigmoid", operator("decode", "Sigmoid", "HardSigmoid"), "decode"),
    ("detector", "weight", weight("body.2", "Conv"), "body.2"),
]


@pytest.mark.parametrize("name_of_exporter", ["torchscript", "dynamo"])
@pytest.mark.parametrize(("name", "fault", "plant", "module"), FAULTS, ids=[f"{f[0]}: {f[1]}" for f in FAULTS])
def test_planted_fault(files, name, fault, plant, module, name_of_exporter):
    model, args = make(name)
    proto = exported(files, name, name_of_exporter)
    plant(Graph(proto, dict(model.named_modules())))
    found = localise(model, proto, args)
    assert found.found
    assert found.module == module, str(found)
    assert found.statement.startswith("check/test_localise.py:")


@pytest.mark.parametrize(
    ("name", "fault", "plant", "module"), FAULTS[::2], ids=[f"{f[0]}: {f[1]}" for f in FAULTS[::2]]
)
def test_a_large_model_is_searched_piece_by_piece(files, monkeypatch, name, fault, plant, module):
    runs = []
    monkeypatch.setattr("torch_onnx_compat.check.localise.BUDGET", 40_000)
    read = FileLog.read
    monkeypatch.setattr(FileLog, "read", lambda log, names: (runs.append(names), read(log, names)))
    model, args = make(name)
    proto = exported(files, name, "torchscript")
    plant(Graph(proto, dict(model.named_modules())))
    assert localise(model, proto, args).module == module
    assert len(runs) >= 2


def test_weights_outside_the_file(files, tmp_path):
    model, args = make("classifier")
    proto = exported(files, "classifier", "torchscript")
    weight("layers.1.conv2", "Conv")(Graph(proto, dict(model.named_modules())))
    path = tmp_path / "a.onnx"
    onnx.save(proto, path, save_as_external_data=True, location="a.onnx.data", size_threshold=64)
    assert localise(model, path, args).module == "layers.1.conv2"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.onnx", "a.onnx.data"]


@pytest.mark.parametrize("name_of_exporter", ["torchscript", "dynamo"])
def test_a_folded_batch_norm_is_compared_with_what_the_file_makes_of_it(files, name_of_exporter):
    model, args = make("classifier")
    proto = exported(files, "classifier", name_of_exporter)
    weight("layers.1.conv1", "Conv", function=lambda array: array * 1.01)(Graph(proto, dict(model.named_modules())))
    finding = localise(model, proto, args)
    assert finding.module == "layers.1.bn1"
    assert finding.torch_operator.endswith("batch_norm")
    assert abs(finding.got - finding.wanted) < 0.05 * abs(finding.wanted)


@pytest.mark.parametrize("budget", [512 * 2**20, 40_000])
def test_what_a_rounding_explains_is_passed_over_for_a_fault(files, monkeypatch, budget):
    model, args = make("classifier")
    proto = exported(files, "classifier", "torchscript")
    graph = Graph(proto, dict(model.named_modules()))
    weight("stem", "Conv", function=lambda array: array * (1 + 3e-5))(graph)
    weight("fc", "Gemm", "MatMul")(graph)
    monkeypatch.setattr("torch_onnx_compat.check.localise.BUDGET", budget)
    assert localise(model, proto, args).module == "fc"
    monkeypatch.setattr("torch_onnx_compat.check.localise.RETRIES", 0)
    assert localise(model, proto, args).module == "stem"


@pytest.mark.parametrize("name_of_exporter", ["torchscript", "dynamo"])
@pytest.mark.parametrize("name", MODELS)
def test_a_healthy_file_is_not_blamed(files, name, name_of_exporter):
    model, args = make(name)
    found = localise(model, exported(files, name, name_of_exporter), args)
    assert not found.found, str(found)
    assert str(found) == "no layer differs by more than rounding."
    assert found.layers
    assert all(layer.error <= layer.tolerance for layer in found.layers)


def test_the_counterpart_among_steps_that_are_alike():
    """Two steps that are equal but for their values, as two calls of one operator are."""
    samples = [np.full(4, value, np.float32) for value in (1.0, 2.0, 3.0)]
    steps = [
        Step("aten.mul", "m", "M", "m.py:1", (4,), torch.float32, sample, (i - 1,) if i else (), True)
        for i, sample in enumerate(samples)
    ]
    assert counterpart(steps, steps[1], Value((4,), samples[2], True), set()) is steps[2]
