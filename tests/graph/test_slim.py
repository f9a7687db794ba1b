"""Slimming: what each mechanism leaves of a graph, and that the numbers stay the same at every size."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest
import torch
from slim_programs import session
from torch import nn

from torch_onnx_compat import export_compat
from torch_onnx_compat.graph.slim.facts import Facts
from torch_onnx_compat.graph.slim.fold import fold_constants_within
from torch_onnx_compat.graph.slim.infer import infer
from torch_onnx_compat.graph.slim.remains import count_size_nodes
from torch_onnx_compat.graph.slim.slim import slim
from torch_onnx_compat.graph.slim.weights import transpose_weights
from torch_onnx_compat.graph.tidy.tidy import tidy

SIZES = (0, 1, 2, 3, 7)


def parse(text, opset=20):
    return onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : {opset}]> {text}')


def slimmed(proto, **settings):
    model = ir.from_proto(proto)
    tidy(model, fold=False, **settings)
    return ir.to_proto(model)


def feeds(opened, size):
    rng = np.random.default_rng(size)
    made = {}
    for value in opened.get_inputs():
        shape = [axis if isinstance(axis, int) else size for axis in value.shape]
        is_whole = "int" in value.type
        numbers = rng.integers(0, 4, shape) if is_whole else rng.standard_normal(shape)
        made[value.name] = numbers.astype(
            {"tensor(float)": np.float32, "tensor(int64)": np.int64}.get(value.type, bool)
        )
    return made


def ops(proto):
    return [node.op_type for node in proto.graph.node if node.op_type != "Constant"]


def assert_same(proto, after, sizes=SIZES):
    """Both compute the same at every size, and what fails before may do as it likes."""
    first, second = session(proto), session(after)
    tried = 0
    for size in sizes:
        given = feeds(first, size)
        try:
            expected = first.run(None, given)
        except Exception:  # onnxruntime raises errors of several kinds at sizes that the graph cannot have
            continue
        tried += 1
        for one, other in zip(expected, second.run(None, given), strict=True):
            np.testing.assert_array_equal(other, one, strict=True)
    assert tried >= 2


CASES = {
    "a size that is fixed, of an axis behind a dynamic one": (
        """g (float[n,4,6] x) => (float[n,c,d] y) <int64 two = {2}, int64[1] first = {0}, int64[1] all = {-1}> {
            shape = Shape(x)
            width = Gather(shape, two)
            half = Div(width, two)
            column = Unsqueeze(half, first)
            minus = Constant<value_ints=[-1, 8]>()
            target = Concat<axis=0>(minus, column)
            y = Reshape(x, target)
        }""",
        ["Reshape"],
    ),
    "a table of places along a fixed axis": (
        """g (float[n,4,6] x) => (float[n,4,6] y) <int64 two = {2}, int64 zero = {0}, int64 one = {1}> {
            shape = Shape(x)
            width = Gather(shape, two)
            places = Range(zero, width, one)
            numbers = Cast<to=1>(places)
            waves = Sin(numbers)
            y = Add(x, waves)
        }""",
        ["Add"],
    ),
    "a dynamic size, computed once": (
        """g (float[n,4] x) => (float[2,m] y, float[2,k] z)
                <int64 zero = {0}, int64[1] first = {0}, int64[1] two = {2}> {
            a = Shape(x)
            b = Gather(a, zero)
            c = Unsqueeze(b, first)
            target = Concat<axis=0>(two, c)
            filled = ConstantOfShape<value=float[1] {1.0}>(target)
            w = Relu(x)
            d = Shape(w)
            e = Gather(d, zero)
            f = Unsqueeze(e, first)
            other = Concat<axis=0>(two, f)
            again = ConstantOfShape<value=float[1] {2.0}>(other)
            y = Relu(filled)
            z = Neg(again)
        }""",
        ["Shape", "Gather", "Concat", "ConstantOfShape", "ConstantOfShape", "Relu", "Neg"],
    ),
    "two axes that move are 0 in a target where they stay": (
        """g (float[n,4,n] x) => (float[n,2,2,k] y) <int64 zero = {0}, int64[1] first = {0}, int64[2] two = {2, 2}> {
            a = Shape(x)
            b = Gather(a, zero)
            c = Unsqueeze(b, first)
            target = Concat<axis=0>(c, two, c)
            y = Reshape<allowzero=1>(x, target)
        }""",
        ["Shape", "Gather", "Concat", "Reshape"],  # -1 beside an n of 0 would fail
    ),
    "Reshape, Unsqueeze and Squeeze in a row": (
        """g (float[n,4,6] x) => (float[n,24] y)
                <int64[1] one = {1}, int64[4] split = {-1, 2, 2, 6}, int64[2] flat = {-1, 24}> {
            a = Unsqueeze(x, one)
            b = Squeeze(a, one)
            c = Reshape(b, split)
            y = Reshape(c, flat)
        }""",
        ["Reshape"],
    ),
    "Transposes that undo each other, and others": (
        """g (float[n,4,6] x) => (float[n,4,6] y, float[6,n,4] z) {
            a = Transpose<perm=[0,2,1]>(x)
            b = Transpose<perm=[0,2,1]>(a)
            y = Relu(b)
            c = Transpose<perm=[1,0,2]>(x)
            z = Transpose<perm=[2,1,0]>(c)
        }""",
        ["Relu", "Transpose"],
    ),
    "Slices of other axes, and one of all": (
        """g (float[n,4,6] x) => (float[n,2,4] y)
                <int64[1] one = {1}, int64[1] two = {2}, int64[1] end = {9223372036854775807},
                int64[1] first = {0}, int64[1] last = {-1}, int64[1] zero = {0}> {
            a = Slice(x, first, end, zero)
            b = Slice(a, one, last, two)
            three = Add(one, two)
            y = Slice(b, one, three, one)
        }""",
        ["Slice"],
    ),
    "Slices of the same axis": (
        """g (float[n,8] x) => (float[n,k] y) <int64[1] one = {1}, int64[1] six = {6}, int64[1] three = {3}> {
            a = Slice(x, one, six, one)
            y = Slice(a, one, three, one)
        }""",
        ["Slice", "Slice"],
    ),
    "TorchScript's expand": (
        """g (float[n,1,6] x) => (float[n,4,6] y) <int64[3] given = {-1, 4, 6}, int64[3] minus = {-1, -1, -1}> {
            shape = Shape(given)
            ones = ConstantOfShape<value=int64[1] {1}>(shape)
            same = Equal(given, minus)
            target = Where(same, ones, given)
            y = Expand(x, target)
        }""",
        ["Expand"],
    ),
    "nodes that do nothing": (
        """g (float[n,4] x) => (float[n,4] y)
                <float zero = {0.0}, float[4] ones = {1.0, 1.0, 1.0, 1.0}, int64[4] none = {0, 0, 0, 0},
                int64[2] once = {1, 1}> {
            a = Identity(x)
            b = Cast<to=1>(a)
            c = Add(b, zero)
            d = Mul(ones, c)
            e = Pad(d, none)
            f = Tile(e, once)
            g1 = Concat<axis=0>(f)
            h, mask = Dropout(g1)
            shape = Shape(x)
            i = Expand(h, shape)
            y = Relu(i)
        }""",
        ["Relu"],
    ),
    "ones that make a sum larger stay": (
        """g (float[n,4] x) => (float[n,m,4] y) <float[1,3,1] zeros = {0.0, 0.0, 0.0}, int64[1] one = {1}> {
            wide = Unsqueeze(x, one)
            y = Add(wide, zeros)
        }""",
        ["Unsqueeze", "Add"],
    ),
    "one row, kept as an axis": (
        """g (float[n,4] x) => (float[n,1] y) <int64 two = {2}, int64[1] one = {1}> {
            row = Gather<axis=1>(x, two)
            y = Unsqueeze(row, one)
        }""",
        ["Gather"],
    ),
    "a number beside a tensor of the same size": (
        """g (float[n,4] x) => (float[n,4] y) {
            shape = Shape(x)
            half = ConstantOfShape<value=float[1] {0.5}>(shape)
            y = Mul(x, half)
        }""",
        ["Mul"],
    ),
    "the padding of a fixed axis, in floating point": (
        """g (float[n,6] x) => (float[n,8] y)
                <int64 one = {1}, float stride = {4.0}, float zero = {0.0}, float two = {2.0}, int64[1] at = {0},
                int64[2] none = {0, 0}, int64[2] split = {1, 1}, int64[1] ones = {1}> {
            shape = Shape(x)
            width = Gather(shape, one)
            size = Cast<to=1>(width)
            ratio = Div(size, stride)
            steps = Ceil(ratio)
            whole = Mul(steps, stride)
            missing = Sub(whole, size)
            amount = Clip(missing, zero)
            half = Div(amount, two)
            left = Floor(half)
            right = Sub(amount, left)
            some = Greater(amount, zero)
            used = Where(some, left, zero)
            vectors = Unsqueeze(used, at)
            others = Unsqueeze(right, at)
            both = Concat<axis=0>(vectors, others)
            ends = Cast<to=7>(both)
            first, last = Split<axis=0>(ends, split)
            empty = Slice(none, at, ones)
            pads = Concat<axis=0>(empty, first, empty, last)
            y = Pad(x, pads)
        }""",
        ["Pad"],
    ),
    "a condition on sizes that always holds": (
        """g (float[n,4] x) => (float[n,4] y) <int64 one = {1}, int64 three = {3}> {
            shape = Shape(x)
            width = Gather(shape, one)
            wide = Greater(width, three)
            twice = Add(x, x)
            y = Where(wide, twice, x)
        }""",
        ["Add"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_stays(name):
    text, left = CASES[name]
    proto = parse(text)
    after = slimmed(proto)
    assert ops(after) == left
    assert_same(proto, after)


def written(start, size, other):
    """x[:, start:size] = Relu(that part), as exporters write it; other is the size of the second axis."""
    return parse(f"""g (float[n,{other},3] x, float[n,{size - start},3] part) => (float[n,{other},3] y)
        <int64 zero = {{0}}, int64 one = {{1}}, int64 start = {{{start}}}, int64 end = {{{size}}}, int64 three = {{3}},
         int64[1] last = {{-1}}, int64[3] rows = {{-1, 1, 1}}, int64[2] columns = {{-1, 1}}> {{
        shape = Shape(part)
        n = Gather(shape, zero)
        a = Range(zero, n, one)
        b = Reshape(a, rows)
        c = Expand(b, shape)
        d = Unsqueeze(c, last)
        e = Range(start, end, one)
        f = Reshape(e, columns)
        g1 = Expand(f, shape)
        h = Unsqueeze(g1, last)
        i = Range(zero, three, one)
        j = Expand(i, shape)
        k = Unsqueeze(j, last)
        places = Concat<axis=-1>(d, h, k)
        y = ScatterND(x, places, part)
    }}""")


@pytest.mark.parametrize(
    ("start", "end", "left"),
    [(0, 4, []), (1, 4, ["Slice", "Concat"]), (0, 3, ["Slice", "Concat"]), (1, 3, ["Slice", "Slice", "Concat"])],
)
def test_a_box_is_written_without_a_list_of_its_places(start, end, left):
    proto = written(start, end, 4)
    after = slimmed(proto)
    assert [op for op in ops(after) if op != "Identity"] == left
    assert_same(proto, after)


@pytest.mark.parametrize("size", [8, 400])
def test_a_list_of_other_places_stays(size):
    """x[:, ::2] = part, whose places are as many as those of the first half."""
    proto = written(0, size // 2, size)
    columns = next(node for node in proto.graph.node if node.output[0] == "e")
    columns.input[1:] = ["all", "two"]
    for name, number in (("all", size), ("two", 2)):
        proto.graph.initializer.append(onnx.helper.make_tensor(name, onnx.TensorProto.INT64, [], [number]))
    after = slimmed(proto)
    assert "ScatterND" in ops(after)
    assert_same(proto, after)


def test_bodies_of_if_and_loop_read_the_sizes_around_them():
    proto = parse("""g (float[n,4] x, bool test) => (float[n,4] y, float[n,4] z)
        <int64 zero = {0}, int64 one = {1}, int64 rounds = {3},
        bool always = {1}, int64[1] first = {0}, int64[1] four = {4}> {
        y = If (test) <
            then_branch = t () => (float[n,4] a) { s = Shape(x) a1 = Expand(x, s) a2 = Identity(a1) a = Relu(a2) },
            else_branch = e () => (float[n,4] b) {
                s2 = Shape(x) w = Gather(s2, one) c = Unsqueeze(w, first) m = Constant<value_ints=[-1]>()
                t2 = Concat<axis=0>(m, c) b1 = Reshape(x, t2) b = Neg(b1)
            }
        >
        z = Loop (rounds, always, x) <
            body = l (int64 i, bool go, float[n,4] v) => (bool more, float[n,4] w2) {
                more = Identity(go) s3 = Shape(x) o = Expand(x, s3) w2 = Add(v, o)
            }
        >
    }""")
    after = slimmed(proto)
    inner = [
        node.op_type
        for node in after.graph.node
        for attribute in node.attribute
        for node in attribute.g.node
        if node.op_type != "Constant"
    ]
    assert sorted(inner) == ["Add", "Identity", "Neg", "Relu"]
    assert_same(proto, after)


def test_what_a_loop_carries_may_change_its_size():
    """The body's input has the shape of the first round in the file."""
    proto = parse("""g (float[n,4] x) => (float[k,4] z, float[n,4] y) <int64 rounds = {3}, bool always = {1}> {
        outer = Shape(x)
        y = ConstantOfShape(outer)
        z = Loop (rounds, always, x) <
            body = l (int64 i, bool go, float[n,4] v) => (bool more, float[m,4] w) {
                more = Identity(go) s = Shape(v) o = ConstantOfShape(s) w = Concat<axis=0>(v, o)
            }
        >
    }""")
    after = slimmed(proto)
    assert_same(proto, after)


def test_functions_are_slimmed_and_keep_their_own_constants():
    proto = onnx.parser.parse_model("""
        <ir_version: 9, opset_import: ["" : 20, "own" : 1]>
        g (float[n,4] x) => (float[n,4] y) { y = own.Double(x) }
        <domain: "own", opset_import: ["" : 20]>
        Double (x) => (y) {
            shape = Constant<value_ints=[2, 3]>() zero = Constant<value_int=0>()
            two = Gather(shape, zero) f = Cast<to=1>(two) same = Identity(x) y = Mul(same, f)
        }
    """)
    after = slimmed(proto)
    (function,) = after.functions
    assert [node.op_type for node in function.node if node.op_type != "Constant"] == ["Mul"]
    assert_same(proto, after)


def test_an_output_keeps_its_name_and_stays_a_value_of_its_own():
    proto = parse("g (float[n,4] x) => (float[n,4] y, float[n,4] z) { y = Identity(x) a = Identity(x) z = Relu(a) }")
    after = slimmed(proto)
    assert [value.name for value in after.graph.output] == ["y", "z"]
    assert ops(after) == ["Identity", "Relu"]
    assert_same(proto, after)


def constants(room, proto):
    model = ir.from_proto(proto)
    facts = Facts(20)
    facts.begin(model.graph, is_main=True)
    for node in model.graph:
        infer(facts, node)
    fold_constants_within(model, facts, room)
    after = slimmed(ir.to_proto(model), is_fixed=False)
    return after, {value.name: list(value.dims) for value in after.graph.initializer}


TABLE = """g (float[n,1000] x) => (float[n,1000] y)
        <int64 zero = {0}, int64 one = {1}, int64 end = {1000}, float[1] scale = {0.5}> {
    places = Range(zero, end, one)
    numbers = Cast<to=1>(places)
    scaled = Mul(numbers, scale)
    waves = Sin(scaled)
    y = Add(x, waves)
}"""


@pytest.mark.parametrize(("room", "left"), [(8000, ["Add"]), (3000, ["Range", "Cast", "Mul", "Sin", "Add"])])
def test_constants_grow_no_further_than_there_is_room(room, left):
    proto = parse(TABLE)
    after, _ = constants(room, proto)
    assert ops(after) == left
    assert_same(proto, after)


def test_the_smaller_result_on_the_way_is_stored_where_the_larger_has_no_room():
    proto = parse("""g (float[n,40,40] x) => (float[n,40,40] y)
        <int64 zero = {0}, int64 one = {1}, int64 end = {40}, int64[2] shape = {40, 40}> {
        places = Range(zero, end, one)
        numbers = Cast<to=1>(places)
        waves = Sin(numbers)
        table = Expand(waves, shape)
        y = Mul(x, table)
    }""")
    after, _ = constants(1000, proto)
    assert ops(after) == ["Expand", "Mul"]
    assert_same(proto, after)


def test_random_numbers_stay_random():
    proto = parse("""g (float[n,4] x) => (float[n,4] y) <int64[2] shape = {1, 4}> {
        noise = RandomNormal<shape=[1, 4]>()
        filled = ConstantOfShape(shape)
        more = RandomUniformLike<dtype=1>(filled)
        a = Add(x, noise)
        y = Add(a, more)
    }""")
    after = slimmed(proto)
    assert "RandomNormal" in ops(after)
    assert "RandomUniformLike" in ops(after)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(50, 16)
        self.body = nn.Linear(16, 16)

    def forward(self, tokens):
        return self.body(self.table(tokens)) @ self.table.weight.T


@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
def test_a_weight_that_is_read_both_ways_is_stored_once(exporter):
    result = export_compat(Tied().eval(), torch.randint(0, 50, (2, 7)), dynamic="batch", exporter=exporter)
    sizes = [list(value.dims) for value in result.model_proto.graph.initializer]
    assert sizes.count([50, 16]) + sizes.count([16, 50]) == 1


def test_a_transposed_weight_is_a_view_of_the_weight():
    weight = np.arange(12, dtype=np.float32).reshape(3, 4)
    zeros = ", ".join("0" * 12)
    text = f"(float[n,4] x) => (float[n,3] y) <float[3,4] w = {{{zeros}}}> {{ t = Transpose(w) y = MatMul(x, t) }}"
    model = ir.from_proto(parse(f"g {text}"))
    value = model.graph.initializers["w"]
    value.const_value = ir.Tensor(weight, name="w")
    transpose_weights(model)
    made = model.graph.initializers["w_transposed"]
    assert np.shares_memory(made.const_value.numpy(), weight)
    tidy(model, fold=False)
    after = ir.to_proto(model)
    assert ops(after) == ["MatMul"]
    x = np.random.default_rng(0).standard_normal((2, 4)).astype(np.float32)
    np.testing.assert_allclose(session(after).run(None, {"x": x})[0], x @ weight.T, rtol=1e-6)


@pytest.mark.parametrize("export_params", [True, False])
def test_weights_that_are_inputs_are_no_constants(tmp_path, export_params):
    """A bias of zeros may be another one when the file runs."""

    class Biased(nn.Module):
        def __init__(self):
            super().__init__()
            self.bias = nn.Parameter(torch.zeros(4))

        def forward(self, x):
            return (x + self.bias).relu()

    result = export_compat(
        Biased(), torch.rand(2, 4), tmp_path / "m.onnx", exporter="torchscript", export_params=export_params
    )
    assert ("Add" in result.nodes) != export_params


class Windows(nn.Module):
    """Windows of a picture, shifted, with a table of relative positions, as in Swin."""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(49, 2))
        self.qkv = nn.Linear(8, 24)

    def forward(self, x):
        batch, height, width, channels = x.shape
        x = torch.roll(x, (-1, -1), (1, 2))
        x = x.view(batch, height // 4, 4, width // 4, 4, channels).permute(0, 1, 3, 2, 4, 5).reshape(-1, 16, channels)
        q, k, v = self.qkv(x).reshape(x.shape[0], 16, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        place = torch.stack(torch.meshgrid(torch.arange(4), torch.arange(4), indexing="ij")).flatten(1)
        apart = (place[:, :, None] - place[:, None, :] + 3).permute(1, 2, 0)
        bias = self.table[(apart[..., 0] * 7 + apart[..., 1]).view(-1)].view(16, 16, 2).permute(2, 0, 1)
        mask = torch.zeros(height, width, dtype=torch.long)
        mask[-2:, :] = 1
        mask = mask.view(height // 4, 4, width // 4, 4).permute(0, 2, 1, 3).reshape(-1, 16)
        scores = (q @ k.transpose(-2, -1) + bias).view(batch, -1, 2, 16, 16)
        scores = scores.masked_fill((mask[:, None, :] != mask[:, :, None])[None, :, None], -100.0)
        return (scores.flatten(0, 1).softmax(-1) @ v).flatten(1)


@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
def test_windows_of_a_picture_keep_no_arithmetic_of_sizes(exporter):
    result = export_compat(Windows().eval(), torch.rand(1, 8, 8, 8), dynamic="batch", exporter=exporter)
    assert not set(result.nodes) & {"Shape", "Range", "ConstantOfShape", "Expand", "ScatterND", "Mod", "Cast", "Equal"}
    assert sum(result.nodes.values()) < 40
    assert all(row.ok for row in result.table)


def test_the_time_is_linear_in_the_nodes():
    """Counts calls, which do not depend on the machine."""
    import cProfile
    import pstats

    def calls(layers):
        body = "".join(
            f"s{i} = Shape(x{i}) a{i} = Gather(s{i}, zero) b{i} = Unsqueeze(a{i}, first) "
            f"c{i} = Concat<axis=0>(b{i}, four) d{i} = Reshape(x{i}, c{i}) x{i + 1} = Relu(d{i}) "
            for i in range(layers)
        )
        constants = "int64 zero = {0}, int64[1] first = {0}, int64[1] four = {4}"
        model = ir.from_proto(parse(f"g (float[n,4] x0) => (float[n,4] x{layers}) <{constants}> {{ {body} }}"))
        profile = cProfile.Profile()
        profile.runcall(slim, model)
        return pstats.Stats(profile).total_calls

    few, many = calls(50), calls(400)
    assert many < 9 * few


@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
def test_output_axes_are_named_after_the_inputs(exporter):
    def doubled(image):
        return torch.cat([image, image], 0).flatten(2), image.mean((2, 3)), image[:, :, 1:]

    dynamic = {"image": {0: "batch", 2: "image height"}}
    result = export_compat(doubled, torch.rand(3, 4, 5, 6), dynamic=dynamic, exporter=exporter)
    shapes = [
        [axis.dim_param or axis.dim_value for axis in value.type.tensor_type.shape.dim]
        for value in result.model_proto.graph.output
    ]
    assert shapes[0][:2] == ["2*batch", 4]
    assert shapes[0][2] in ("6*image height", "6*(image height)")
    assert shapes[1] == ["batch", 4]
    assert [shapes[2][place] for place in (0, 1, 3)] == ["batch", 4, 6]


def test_a_note_says_where_many_nodes_compute_sizes():
    dynamic = {"x": {0: "batch", 1: "height", 2: "width"}}
    result = export_compat(Windows().eval(), torch.rand(1, 8, 8, 8), dynamic=dynamic, dynamo=False, verify=False)
    (note,) = (note for note in result.notes if "compute sizes" in note)
    assert "exporter='dynamo' may write fewer" in note
    result = export_compat(Windows().eval(), torch.rand(1, 8, 8, 8), dynamic="batch", dynamo=False, verify=False)
    assert not any("compute sizes" in note for note in result.notes)


def test_what_computes_sizes_is_counted():
    proto = parse("""g (float[n,m] x) => (float[k] y, float[n,m] z) <int64 zero = {0}, int64 one = {1}> {
        s = Shape(x) a = Gather(s, zero) b = Gather(s, one) c = Mul(a, b) d = Cast<to=1>(c)
        e = Constant<value=float {1.0}>() y = Range(e, d, e) z = Mul(x, d)
    }""")
    assert count_size_nodes(ir.from_proto(proto)) == 6  # all but the Constant and the last Mul


def test_matrices_that_are_nearly_turned_ones_are_both_stored():
    one = np.random.default_rng(0).standard_normal((20, 30)).astype(np.float32)
    for number, left in ((0.0, 1), (0.5, 2)):
        other = one.T.copy()
        other[3, 4] += np.float32(number)  # the corners stay
        values = [onnx.numpy_helper.from_array(array, name) for array, name in ((one, "one"), (other, "own::other"))]
        proto = parse("g (float[n,20] x) => (float[n,30] y, float[n,30] z) { y = MatMul(x, one) z = Relu(y) }")
        proto.graph.initializer.extend(values)
        proto.graph.node[1].op_type = "Gemm"
        proto.graph.node[1].input[:] = ["x", "own::other"]
        proto.graph.node[1].attribute.append(onnx.helper.make_attribute("transB", 1))
        after = slimmed(proto)
        assert len(after.graph.initializer) == left
        x = {"x": np.random.default_rng(1).standard_normal((3, 20)).astype(np.float32)}
        for before, now in zip(session(proto).run(None, x), session(after).run(None, x), strict=True):
            np.testing.assert_allclose(now, before, rtol=1e-5, atol=1e-5)
