"""Flips, rolls, transposes, splits, stacks and repeats, in rows; against eager torch; nodes; what is declined."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from torch_onnx_compat import Ops, Value, export_compat
from torch_onnx_compat.catalogue.catalogue import catalogue
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.targets import Target
from torch_onnx_compat.targets.target import Row
from torch_onnx_compat.testing import Example, assert_same_outputs

X = torch.tensor([[0.5, -2.0, 3.0, 0.1], [1.5, 0.0, -0.3, 2.0], [-1.0, 0.7, 0.2, 4.0]])
GENERATOR = torch.Generator().manual_seed(0)
VOLUME = torch.randn(2, 3, 4, 5, generator=GENERATOR)
MATRICES = torch.randn(2, 3, 4, generator=GENERATOR)
COUNTED = torch.arange(48.0).reshape(2, 4, 6)
IMAGE = torch.randn(3, 4, 5, 2, generator=GENERATOR)
IMAGE_AXES = {"x": {0: "batch", 1: "height", 2: "width"}}
TABLE = torch.randn(3, 4, generator=GENERATOR)
QUANTIZED = torch.randn(2, 6, 4, generator=GENERATOR)
MIXED = (torch.randn(2, 3, generator=GENERATOR), torch.tensor([[2, -3, 4], [0, 5, 1]]))
CELL = torch.rand(2, 3, 1, 4, generator=GENERATOR)
ROWS = torch.randn(2, 4, 3, generator=GENERATOR)
TIMES = torch.tensor([2, 0, 3, 1])
WITHOUT_TILE = Target("without_tile", rows=(Row("Tile", "refused"),))


def body(name):
    return catalogue()[name].body


def turns(x):
    unchanged = x.rot90(4, (1, 2))
    unchanged += 1
    found = (torch.rot90(x, k, dims) for k in (1, 2, 3, -1, 5) for dims in ((2, 3), (-1, -3)))
    return *found, unchanged, x.rot90(), torch.rot90(x, dims=[0, 2]), (x > 0).rot90(1, (1, 2))


def rolls(x):
    """Every form of the call: flattened, one axis, several, one twice, from the end, beyond the size, by a size."""
    height, width = x.shape[1], x.shape[2]
    unchanged = torch.roll(x, 0, 1)
    unchanged += 1
    flattened = x.roll(3), torch.roll(x, -2), x.roll(1000)
    one = x.roll(2, 1), x.roll(-2, -2), x.roll(17, 2), x.roll(-9, 3), torch.roll(x, shifts=(3,), dims=(0,))
    several = x.roll((1, -2), (1, 2)), x.roll([1, 2], [1, 1]), x.roll((1, -2, 3), (-1, 0, 2))
    by_size = x.roll(height // 2, 1), x.roll((-(height // 2), width // 3), dims=(1, 2)), x.roll(width, 1)
    types = x.abs().roll(1, 2), x.to(torch.int64).roll(1, 2), (x > 0).roll(1, 2)
    return *flattened, *one, *several, *by_size, unchanged, *types


def roll_back(input, shifts, dims=None):
    shifts = tuple(-s for s in shifts) if isinstance(shifts, (tuple, list)) else -shifts
    return body("roll_to_slices")(input, shifts, dims)


def moves(x):
    one = x.movedim(-1, 0), torch.moveaxis(x, 1, -1)
    several = torch.movedim(x, (0, -1), (-2, 1)), x.moveaxis((0, 1), (-1, 2)), x.movedim([0, 1, 2], [-1, 0, 1])
    return *one, *several, x.movedim((3, 2, 1, 0), (-1, -2, -3, -4))


def identity(op: Ops, self: Value) -> Value:
    return op.Identity(self)


def quantized_chunks(x):
    q = torch.quantize_per_tensor(x, 0.02, 64, torch.quint8)
    first, second = q.chunk(2, dim=1)
    three = torch.chunk(torch.cat((second, first), 1), 4, -1)
    return first.dequantize(), second.dequantize(), three[3].dequantize()


def chunk_without_zero_point(input, chunks, dim=0):
    if not input.is_quantized:
        return NotImplemented
    pieces = input.dequantize().chunk(chunks, dim)
    return tuple(torch.quantize_per_tensor(piece, input.q_scale(), 0, input.dtype) for piece in pieces)


def depth_stacks(x):
    images = torch.dstack((x.unsqueeze(2), x))
    return torch.dstack((x, 2 * x)), torch.dstack((x[0], x[1])), torch.dstack((x[0, 0], x[0, 1])), images


def mixed_stacks(x, i):
    return (
        torch.stack((x, i)),
        torch.stack([i, x.double(), x], 1),
        torch.stack((x > 0, i.int(), i), dim=-1),
        torch.stack((i[0, 0], x[0, 0])),
        torch.stack((x.half(), i)),
    )


def grids(x):
    """A grid for each item of the batch, as optical flow makes it; one that is written to; new axes in front."""
    grid = torch.arange(5.0)[None, None].repeat(x.shape[0], 3, 1)
    written = x[:1, :1].repeat(x.shape[0], 1, 1, 1)
    written[..., 0] = 1.0
    return grid, written, x.repeat(1, 1, 6, 1), x[0, 0].repeat(2, x.shape[1], 3, 1), x[:0, :1].repeat((1, 2, 1, 1))


def repeats_by_size(x):
    return x[:, :2].repeat_interleave(x.shape[0], 1), x[0].repeat_interleave(x.shape[0]), x.repeat_interleave(0, -1)


def repeats_of_output_size(x, times):
    return torch.repeat_interleave(x, times, 1, output_size=6)


def repeats_by_tensor(x, times):
    one = x.repeat_interleave(times, 1), torch.repeat_interleave(x, times, dim=-2), torch.repeat_interleave(times)
    fixed = x[0, :, 0].repeat_interleave(times), x.repeat_interleave(torch.tensor([2, 0, 1, 1]), 1)
    return *one, *fixed, repeats_of_output_size(x, times), (x > 0).repeat_interleave(times.int(), 1)


def repeat_backwards(name):
    return lambda input, repeats=None, dim=None, *, output_size=None: body(name)(
        input.flip(dim or 0), repeats, dim, output_size=output_size
    )


def padded(x):
    """Sequences of three lengths, of one axis and of two, of numbers and of integers."""
    pad = torch.nn.utils.rnn.pad_sequence
    rows = [x, x[:2], x[:1]]
    flat = [x[:, 0], x[:1, 1]]
    whole = [(x > 0).long(), (x[:2] > 0).long()]
    other = {"batch_first": True, "padding_value": -1.5}
    return pad(rows), pad(rows, **other), pad(rows, padding_side="left"), pad(flat), pad(whole, padding_value=7.0)


def padded_with_zeros(
    op: Ops,
    sequences: list[Value],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Value:
    return body("pad_sequence")(op, sequences, batch_first, 0.0, padding_side)


def of_nothing(shape):
    """A part without rows, in another shape and back, as a scan by doubling has it in its last round."""

    def scanned(x):
        none = x[:, None, :][:, 1:]
        return torch.cat([x[:, None], shape(none.reshape(-1, 4) * 2, (*none.shape[:-1], 4))], 1)

    return scanned


def taken_apart(x):
    """Who asks for the shape afterwards has to hear of the size that varies."""
    y = x.unflatten(-1, (2, -1))
    z = torch.unflatten(x.t().flatten(), 0, (x.shape[1], x.shape[0]))
    return y, y.sum(1).view(y.shape[0], -1), (z * 2).view(z.shape[0], 1, z.shape[1]), x.unflatten(1, (1, 2, 2))


EXAMPLES = [
    *(
        Example(
            name,
            of_nothing(shape),
            (X,),
            leaves=lambda x, shape=shape: shape(x, (-1, 2)),
            broken=lambda op, self, size: op.Reshape(self, size, allowzero=0),
        )
        for name, shape in (("view_of_nothing", Tensor.view), ("reshape_of_nothing", Tensor.reshape))
    ),
    Example(
        "unflatten_to_reshape",
        taken_apart,
        (X,),
        broken=lambda input, dim, sizes: input.reshape(*sizes, -1),
    ),
    Example(
        "pad_sequence",
        padded,
        (X,),
        leaves=lambda x: torch.stack([x, x]),
        broken=padded_with_zeros,
        dynamic=None,
    ),
    Example(
        "tile_to_repeat",
        lambda x: (x.tile(2, 1, 3), torch.tile(x, (2,)), x[0].tile(x.shape[0], 1), x.tile(()), x.tile((0, 2))),
        (X,),
        broken=lambda input, *dims: input.repeat(1, 1, *[1] * input.dim()),
    ),
    Example(
        "squeeze_of_larger_axes",
        lambda x: (x.squeeze(1), x[:, None].squeeze((1, 2)), x[:, :1].squeeze(-1), x.squeeze(-1) + 1),
        (X,),
        broken=lambda input, dim=None: input[..., :1],
        leaves=lambda x: (x.unsqueeze(0).squeeze(0), x.squeeze()),
    ),
    Example("ravel_to_reshape", lambda x: (torch.ravel(x), x.t().ravel()), (X,), leaves=lambda x: x.reshape(-1)),
    *(
        Example(
            f"{flip.__name__}_to_flip",
            lambda x, flip=flip: (flip(x), flip(x[:, :2])),
            (X,),
            broken=lambda input: input,
            leaves=lambda x: torch.flip(x, (0, 1)),
        )
        for flip in (torch.fliplr, torch.flipud)
    ),
    Example(
        "rot90_to_flip",
        turns,
        (VOLUME,),
        dynamic={"x": {0: "batch", 2: "height"}},
        broken=lambda input, k=1, dims=(0, 1): input.flip(dims[0]).transpose(*dims),
        leaves=lambda x: x.flip(1),
    ),
    Example(
        "roll_to_slices",
        rolls,
        (IMAGE,),
        dynamic=IMAGE_AXES,
        samples=[(torch.randn(2, 1, 7, 2, generator=GENERATOR),)],
        broken=roll_back,
    ),
    Example(
        "movedim_to_permute",
        moves,
        (VOLUME,),
        broken=lambda input, source, destination: input.permute(1, 2, 3, 0),
        leaves=lambda x: x.movedim((0, 1), (2, 0)),
    ),
    *(
        Example(entry, model, (MATRICES,), broken=identity, leaves=lambda x: x.transpose(1, 2))
        for entry, model in (
            ("mT", lambda x: (x.mT, x.mT + 1, x[0].mT, x[:, None].mT, (x > 0).mT)),
            ("mH", lambda x: (x.mH, x[0].adjoint(), x[:, None].mH)),
            ("matrix_H", lambda x: (x[0].H, x[0].H + 1)),
        )
    ),
    *(
        Example(
            entry,
            model,
            (COUNTED,),
            broken=lambda input, places, dim=None, entry=entry: body(entry)(input, places)[::-1],
            leaves=lambda x: x.split(2, 1)[0],
        )
        for entry, model in (
            ("hsplit_to_slices", lambda x: (*torch.hsplit(x, 2), *x.hsplit((1, 3)), *x[0, 0].hsplit(3))),
            (
                "vsplit_to_slices",
                lambda x: (*torch.vsplit(x, (1,)), *x[0].vsplit(2), *x.transpose(0, 1).vsplit((1, 3))),
            ),
            ("dsplit_to_slices", lambda x: (*torch.dsplit(x, 3), *x.dsplit((1, 3)))),
            ("tensor_split_to_slices", lambda x: (*torch.tensor_split(x, 3), *x.tensor_split((1, 3)))),
        )
    ),
    Example(
        "chunk_of_few_cells",
        lambda x: (*x.chunk(3, 1)[::-1], *torch.chunk(x, 8, -1)),
        (COUNTED,),
        broken=lambda input, chunks, dim=0: body("chunk_of_few_cells")(input, chunks, dim)[::-1],
        leaves=lambda x: x.chunk(2, 1)[1],
        exporters=("torchscript",),
    ),
    Example(
        "chunk_of_quantized",
        quantized_chunks,
        (QUANTIZED,),
        broken=chunk_without_zero_point,
        leaves=lambda x: x.chunk(2, 1)[1],
        exporters=("torchscript",),
    ),
    Example(
        "column_stack_to_cat",
        lambda x: (
            torch.column_stack((x[:, 0], x)),
            torch.column_stack((x[0], x[1])),
            torch.column_stack((x[0, 0], x[0, 1])),
        ),
        (TABLE,),
        samples=[(torch.randn(5, 4, generator=GENERATOR),)],
        broken=lambda tensors: body("column_stack_to_cat")(tensors[::-1]),
        leaves=lambda x: torch.hstack((x, x)),
    ),
    Example(
        "dstack_to_cat",
        depth_stacks,
        (TABLE,),
        samples=[(torch.randn(5, 4, generator=GENERATOR),)],
        broken=lambda tensors: body("dstack_to_cat")(tensors[::-1]),
        leaves=lambda x: torch.stack((x, 2 * x), 2),
    ),
    Example(
        "stack_promoted",
        mixed_stacks,
        MIXED,
        broken=lambda tensors, dim=0: torch.stack([t.int() for t in tensors], dim),
        leaves=lambda x, i: torch.stack((x, x * i)),
        exporters=("dynamo", "torchscript"),
    ),
    Example(
        "repeat_to_expand",
        grids,
        (CELL,),
        leaves=lambda x: x.expand(-1, -1, 6, -1),
        options={"include": ("repeat_to_expand",)},
    ),
    Example(
        "repeat_interleave_by_size",
        repeats_by_size,
        (ROWS,),
        broken=repeat_backwards("repeat_interleave_by_size"),
        leaves=lambda x: x.repeat_interleave(2, 1),
        exporters=("dynamo", "torchscript"),
    ),
    Example(
        "repeat_interleave_by_size",
        repeats_of_output_size,
        (ROWS, TIMES),
        dynamic={"x": {0: "batch"}},
        samples=[(torch.randn(3, 4, 3, generator=GENERATOR), torch.tensor([1, 1, 4, 0]))],
        broken=repeat_backwards("repeat_interleave_by_size"),
        exporters=("dynamo",),
    ),
    Example(
        "repeat_interleave_to_nonzero",
        repeats_by_tensor,
        (ROWS, TIMES),
        dynamic={"x": {0: "batch", 2: "width"}},
        samples=[(torch.randn(3, 4, 5, generator=GENERATOR), torch.tensor([0, 5, 1, 0]))],
        broken=repeat_backwards("repeat_interleave_to_nonzero"),
        leaves=lambda x, times: (x.repeat_interleave(2, 1), x.repeat_interleave(torch.tensor([2]), 1)),
        exporters=("torchscript",),
    ),
]


@pytest.mark.parametrize(
    ("entry", "model", "inputs", "nodes"),
    [
        ("fliplr_to_flip", torch.fliplr, X, {"Slice": 1}),
        ("flipud_to_flip", torch.flipud, X, {"Slice": 1}),
        ("rot90_to_flip", lambda x: x.rot90(1, (2, 3)), VOLUME, {"Slice": 1, "Transpose": 1}),
        ("movedim_to_permute", lambda x: x.movedim((0, -1), (2, 0)), VOLUME, {"Transpose": 1}),
        ("mT", lambda x: x.mT, MATRICES, {"Transpose": 1}),
        ("mH", lambda x: x.mH, MATRICES, {"Transpose": 1}),
        ("matrix_H", lambda x: x.H, X, {"Transpose": 1}),
        ("hsplit_to_slices", lambda x: torch.hsplit(x, 2)[1], COUNTED, {"Slice": 1}),
        ("vsplit_to_slices", lambda x: torch.vsplit(x, (1,))[1], COUNTED, {"Slice": 1}),
        ("dsplit_to_slices", lambda x: torch.dsplit(x, 3)[1], COUNTED, {"Slice": 1}),
        ("column_stack_to_cat", lambda x: torch.column_stack((x, x)), TABLE, {"Concat": 1}),
        ("dstack_to_cat", lambda x: torch.dstack((x, x)), TABLE, {"Unsqueeze": 1, "Concat": 1}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_takes_few_nodes(entry, model, inputs, nodes):
    result = assert_same_outputs(lambda x: model(x), inputs, "torchscript", dynamic="batch", uses=(entry,))
    assert {name: count for name, count in result.nodes.items() if name != "Constant"} == nodes


# Roll


def test_roll_of_fixed_sizes(exporter):
    result = assert_same_outputs(rolls, IMAGE, exporter, uses=("roll_to_slices",))
    assert exporter == "torchscript" or not {"Mod", "Shape"} & set(result.nodes)
    result = assert_same_outputs(lambda x: x.roll((2, -1), (1, 2)), IMAGE, exporter, uses=("roll_to_slices",))
    assert {name: count for name, count in result.nodes.items() if name != "Constant"} == {"Slice": 4, "Concat": 2}


def test_roll_at_low_opset():
    assert_same_outputs(rolls, IMAGE, "torchscript", dynamic=IMAGE_AXES, opset=11, uses=("roll_to_slices",))


def rolls_by_rounds(x):
    """Rolled by each number of cells on one axis; the largest of what is rolled on two axes, and flattened."""
    kept = torch.stack([x.roll(-shift, 1) for shift in range(x.shape[1])], 1)
    for shift in range(x.shape[0]):
        x = torch.maximum(x.roll((shift, -shift), (0, 1)), x.roll(shift))
    return kept, x


def test_roll_by_the_number_of_a_round(exporter):
    options = {"dynamic": {"x": {0: "rows", 1: "columns"}}, "uses": ("roll_to_slices",)}
    assert_same_outputs(rolls_by_rounds, (torch.randn(3, 5),), exporter, samples=[(torch.randn(1, 2),)], **options)


EMPTY = [(torch.ones(3, 0, 5, 2),)]


def test_roll_of_empty_axes(exporter):
    options = {"dynamic": IMAGE_AXES, "samples": EMPTY, "uses": ("roll_to_slices",)}
    assert_same_outputs(lambda x: x.roll(1, 1), IMAGE, exporter, **options)


@given(
    shape=st.lists(st.integers(0, 4), min_size=1, max_size=4),
    axes=st.lists(st.tuples(st.integers(-9, 9), st.integers(-4, 3)), min_size=1, max_size=4),
    flattened=st.booleans(),
)
@settings(max_examples=300, deadline=None)
def test_roll_equals_eager(shape, axes, flattened):
    x = torch.arange(torch.Size(shape).numel()).reshape(shape)
    shifts, dims = zip(*((shift, dim % len(shape)) for shift, dim in axes), strict=True)
    args = (shifts[0],) if flattened else (shifts, dims)
    assert torch.equal(body("roll_to_slices")(x, *args), torch.roll(x, *args))


@pytest.mark.parametrize(
    ("model", "exporter", "options", "reason"),
    [
        (lambda x: x.roll(1), "torchscript", {}, r"AssertionError|len\(shifts\)=1"),
        (lambda x: x.roll(17, 2), "torchscript", {}, "does not compute what the model computes"),
        (lambda x: x.roll(x.shape[1] // 2, 1), "dynamo", {"dynamic": IMAGE_AXES}, "have to be constants in ONNX"),
        (lambda x: x.roll(1, 1), "dynamo", {"dynamic": IMAGE_AXES, "samples": EMPTY}, "sample 0"),
    ],
    ids=["flattened", "beyond the size", "by a size", "empty"],
)
def test_stock_roll_fails(model, exporter, options, reason):
    with pytest.raises(CompatError, match=reason):
        assert_same_outputs(model, IMAGE, exporter, exclude=["roll_to_slices"], **options)


# Others


def test_chunks_of_quantized_stay_quantized():
    result = assert_same_outputs(quantized_chunks, QUANTIZED, "torchscript", dynamic="batch")
    assert result.nodes["QuantizeLinear"]


def test_stack_casts_once():
    result = assert_same_outputs(lambda x, i: torch.stack((i, x)), MIXED, "dynamo", uses=("stack_promoted",))
    assert result.nodes["Cast"] == 1


@pytest.mark.parametrize("target", [WITHOUT_TILE, "openvino"], ids=["without Tile", "openvino"])
def test_repeat_for_a_target_without_tile(target, exporter):
    options = {"target": target, "dynamic": "batch", "uses": ("repeat_to_expand",)}
    result = assert_same_outputs(grids, CELL, exporter, **options)
    assert target == "openvino" or "Tile" not in result.nodes


@pytest.mark.parametrize("times", [(1, 2, 1, 1), (2, 1, 1, 1)])
def test_repeat_of_several_cells_keeps_tile(exporter, times):
    result = assert_same_outputs(lambda x: x.repeat(times), CELL, exporter, dynamic="batch")
    assert "repeat_to_expand" not in {note.entry for note in result.applied}
    assert "Tile" in result.nodes


def test_repeat_interleave_of_output_size_gathers():
    options = {"dynamic": {"x": {0: "batch"}}, "uses": ("repeat_interleave_by_size",)}
    assert "Gather" in assert_same_outputs(repeats_of_output_size, (ROWS, TIMES), "dynamo", **options).nodes


def test_repeat_interleave_by_tensor(exporter):
    """TorchScript's has few nodes; dynamo's own is right."""
    model = lambda x, times: x.repeat_interleave(times, 1)  # noqa: E731
    result = assert_same_outputs(model, (ROWS, TIMES), exporter, dynamic={"x": {0: "batch", 2: "width"}})
    applied = "repeat_interleave_to_nonzero" in {note.entry for note in result.applied}
    assert applied is (exporter == "torchscript")
    if applied:
        assert result.nodes.total() - result.nodes["Constant"] <= 10
        assert not {"Loop", "SplitToSequence"} & set(result.nodes)


@pytest.mark.parametrize("repeats", [2, torch.tensor([2])], ids=str)
def test_repeat_interleave_leaves_the_constants_of_other_operators_alone(exporter, repeats):
    """Rotary position embedding: the same -1 names the axis of both."""
    model = lambda x: (x[0, 0].repeat_interleave(repeats, -1), torch.stack((x, -x), -1))  # noqa: E731
    assert_same_outputs(model, VOLUME, exporter, dynamic="batch")


def test_repeat_interleave_by_tensor_of_an_axis_that_varies():
    model = lambda x, times: x.repeat_interleave(times, 1)  # noqa: E731
    samples = [(torch.randn(2, 6, 3), torch.tensor([1, 0, 0, 4, 1, 2]))]
    options = {"dynamic": {"x": {1: "n"}, "times": {0: "n"}}, "samples": samples}
    assert_same_outputs(model, (ROWS, TIMES), "torchscript", uses=("repeat_interleave_to_nonzero",), **options)


@given(times=st.lists(st.integers(0, 4), max_size=6))
@settings(max_examples=100, deadline=None)
def test_repeat_interleave_equals_eager(times):
    repeats = torch.tensor(times, dtype=torch.int64)
    x = torch.randn(2, len(times), 3)
    if len(times) != 1:
        found = body("repeat_interleave_to_nonzero")(x, repeats, 1)
        assert torch.equal(found, x.repeat_interleave(repeats, 1))
    assert torch.equal(body("repeat_interleave_to_nonzero")(repeats), torch.repeat_interleave(repeats))


@pytest.mark.dynamo_from("2.10", "torch.export takes pad_sequence apart, with the longest of the example")
@pytest.mark.parametrize("side", ["right", "left"])
def test_pad_sequence_of_lengths_that_vary(exporter, side):
    """Each of two sequences is the longest once."""
    model = lambda x, y: torch.nn.utils.rnn.pad_sequence([x, y], padding_side=side)  # noqa: E731
    result = export_compat(model, (X, X[:2]), exporter=exporter, dynamic={"x": {0: "n"}, "y": {0: "m"}})
    for one, other in ((X, X[:1]), (X[:2], X), (X[:1], X[:1])):
        assert torch.equal(result(one, other)[0], model(one, other))


def test_roll_of_a_size_that_the_next_size_has_too_after_a_stride():
    """64 // 4 is 65 // 4: the size of the rolled axis varies all the same."""
    model = lambda x: torch.nn.functional.avg_pool2d(x, 4).roll((-1, 1), (2, 3))  # noqa: E731
    options = {"dynamic": {"x": {2: "h", 3: "w"}}, "samples": [(torch.randn(1, 2, 128, 96),)]}
    assert_same_outputs(model, (torch.randn(1, 2, 64, 64),), "torchscript", uses=("roll_to_slices",), **options)
