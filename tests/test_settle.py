"""Axes that only vary together are tied, and axes that the model fixes are fixed, where the caller only named them."""

import numpy as np
import pytest
import torch
from torch import nn

from torch_onnx_compat import export_compat
from torch_onnx_compat.errors import CompatError

NEWEST = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 15)


class Joined(nn.Module):
    def forward(self, x, y):
        return torch.cat([x, y], 1)


class Recurrent(nn.Module):
    """The batch is axis 1 of three inputs."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 5)

    def forward(self, x, h, c):
        return self.lstm(x, (h, c))[0]


class Packed(nn.Module):
    """Lengths have to be sorted, so the batch can only be tried shorter."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 5)

    def forward(self, x, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths)
        return nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0])[0]


class Added(nn.Module):
    """Two pairs of axes, of which the sizes are equal in the example."""

    def forward(self, a, b, c, d):
        return torch.cat([a, b], 1).sum(1), torch.stack([c, d]).sum(1)


class PowersOfTwo(nn.Module):
    """Takes no other lengths, as a transform by halves does."""

    def forward(self, x):
        length = x.shape[1]
        if length & (length - 1):
            raise ValueError(f"{length} is no power of two")
        return torch.cat([x[:, : length // 2] + x[:, length // 2 :], x[:, : length // 2] - x[:, length // 2 :]], 1)


def compare(model, result, *inputs):
    wanted = model(*inputs)
    found = result.session().run(
        None, dict(zip([i.name for i in result.session().get_inputs()], map(np.asarray, inputs), strict=True))
    )
    for one, other in zip(found, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
        np.testing.assert_allclose(one, other.detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("given", [{"x": [0], "y": [0]}, {"x": {0: "bx"}, "y": {0: "by"}}], ids=["lists", "names"])
def test_axes_of_two_inputs(given, exporter):
    model = Joined()
    result = export_compat(
        model.eval(),
        (torch.randn(3, 4), torch.randn(3, 5)),
        exporter=exporter,
        input_names=["x", "y"],
        dynamic_axes=given,
    )
    assert [note for note in result.notes if "vary together" in note]
    assert len(result.axes) == 1
    compare(model, result, torch.randn(7, 4), torch.randn(7, 5))


def test_the_batch_of_states(exporter):
    model = Recurrent().eval()
    example = torch.randn(6, 3, 4), torch.randn(1, 3, 5), torch.randn(1, 3, 5)
    # Through dynamo, torch before 2.15 unrolls an LSTM and fixes its length.
    axes = {"x": [0, 1] if exporter == "torchscript" or NEWEST else [1], "h": [1], "c": [1]}
    result = export_compat(model, example, exporter=exporter, input_names=["x", "h", "c"], dynamic_axes=axes)
    assert {axis.name for axis in result.axes} == {f"x_dynamic_axes_{axis + 1}" for axis in axes["x"]}
    compare(model, result, torch.randn(9 if 0 in axes["x"] else 6, 2, 4), torch.randn(1, 2, 5), torch.randn(1, 2, 5))


@pytest.mark.filterwarnings("ignore")
def test_axes_that_can_only_be_shorter(exporter):
    model = Packed().eval()
    axes = {"x": [0, 1], "lengths": [0]}
    result = export_compat(
        model,
        (torch.randn(6, 3, 4), torch.tensor([6, 5, 3])),
        exporter=exporter,
        input_names=["x", "lengths"],
        dynamic_axes=axes,
    )
    compare(model, result, torch.randn(6, 2, 4), torch.tensor([6, 2]))


def test_groups_are_as_small_as_can_be(exporter):
    model = Added()
    example = [torch.randn(3, 4), torch.randn(3, 5), torch.randn(3, 2), torch.randn(3, 2)]
    result = export_compat(model.eval(), tuple(example), exporter=exporter, dynamic_axes={name: [0] for name in "abcd"})
    assert {axis.name for axis in result.axes} == {"a_dynamic_axes_1", "c_dynamic_axes_1"}
    compare(model, result, torch.randn(7, 4), torch.randn(7, 5), torch.randn(2, 2), torch.randn(2, 2))


def test_an_axis_that_the_model_fixes(exporter):
    model, x = nn.Linear(8, 4), torch.randn(3, 8)
    result = export_compat(model.eval(), (x,), exporter=exporter, input_names=["x"], dynamic_axes={"x": [0, 1]})
    (note,) = [note for note in result.notes if "is fixed at 8" in note]
    assert "cannot be multiplied" in note
    assert [axis.name for axis in result.axes] == ["x_dynamic_axes_1"]
    compare(model, result, x + 1)
    auto = export_compat(
        nn.Linear(6, 4).eval(),
        (torch.randn(3, 6),),
        exporter="dynamo",
        dynamic_shapes=({0: torch.export.Dim("b"), 1: torch.export.Dim.AUTO},),
    )
    assert [axis.name for axis in auto.axes] == ["b"]


def test_an_axis_that_the_caller_insists_on_stays_an_error(exporter):
    with pytest.raises(CompatError, match=r"takes no size but 8|came out fixed at 8"):
        export_compat(nn.Linear(8, 4).eval(), (torch.randn(3, 8),), exporter=exporter, dynamic={"input": {1: "n"}})


def test_labels_of_axes_with_several_sizes(exporter):
    model, example = Joined(), (torch.randn(3, 4), torch.randn(3, 5))
    axes = {"x": {0: "b", 1: "n"}, "y": {0: "b", 1: "n"}}
    with pytest.warns(UserWarning, match="n_2 where it is 5"):
        result = export_compat(model.eval(), example, exporter=exporter, dynamic_axes=axes)
    compare(model, result, torch.randn(2, 9), torch.randn(2, 1))


def test_bounds_of_an_axis(exporter):
    result = export_compat(
        nn.Embedding(10, 4).eval(),
        (torch.randint(0, 9, (2, 5)),),
        exporter=exporter,
        dynamic={"input": {1: ("tokens", 2, 512)}},
    )
    (axis,) = result.axes
    assert (axis.least, axis.most) == (2, 512)
    for wrong in [("tokens", 0), ("tokens", 9, 3), (1, 2, 3), ("tokens",)]:
        with pytest.raises(CompatError, match="no name with bounds"):
            export_compat(nn.ReLU(), (torch.ones(2, 3),), dynamic={"input": {1: wrong}})


def test_shapes_of_variadic_arguments_as_torch_nests_them(exporter):
    class Sum(nn.Module):
        def forward(self, *xs):
            return xs[0] + xs[1]

    batch = torch.export.Dim("batch", min=3)
    example = torch.randn(3, 4), torch.randn(3, 4)
    for shapes in ((({0: batch}, {0: batch}),), {"xs": ({0: batch}, {0: batch})}):
        result = export_compat(Sum().eval(), example, exporter=exporter, dynamic_shapes=shapes)
        compare(Sum(), result, torch.randn(8, 4), torch.randn(8, 4))


class Attention(nn.Module):
    """Pays attention to what is within the lengths; the mask is as long as the longest."""

    def forward(self, x, lengths):
        mask = torch.arange(int(lengths.max()))[None] < lengths[:, None]
        weights = (x @ x.transpose(1, 2)).masked_fill(~mask[:, None], -1e9).softmax(-1)
        return weights @ x


class PackedUnsorted(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(4, 4, batch_first=True)

    def forward(self, x, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return x + nn.utils.rnn.pad_packed_sequence(self.gru(packed)[0], batch_first=True)[0]


@pytest.mark.parametrize("kind", [Attention, PackedUnsorted])
def test_lengths_follow_the_axis(kind):
    """The model takes another size only with another largest length."""
    model = kind().eval()
    example = torch.randn(2, 6, 4), torch.tensor([6, 4])
    result = export_compat(model, example, dynamic_axes={"x": {0: "n", 1: "t"}, "lengths": {0: "n"}})
    assert [note for note in result.notes if "the largest value of lengths is the size of axis t" in note]
    for lengths in ([9, 3], [2], [5, 5, 1], [20, 1, 7, 2]):
        compare(model, result, torch.randn(len(lengths), max(lengths), 4), torch.tensor(lengths))


class Offsets(nn.Module):
    """Sums the rows between offsets, of which the last is the number of rows."""

    def forward(self, x, offsets):
        groups = torch.repeat_interleave(torch.arange(3), offsets[1:] - offsets[:-1])
        return torch.zeros(3, 4).index_add(0, groups, x)


def test_offsets_follow_the_axis(exporter):
    model = Offsets().eval()
    result = export_compat(
        model, (torch.randn(6, 4), torch.tensor([0, 2, 3, 6])), dynamic_axes={"x": {0: "rows"}}, exporter=exporter
    )
    for offsets in ([0, 1, 5, 9], [0, 0, 2, 3], [0, 4, 4, 12]):
        compare(model, result, torch.randn(offsets[-1], 4), torch.tensor(offsets))


def test_an_axis_that_can_only_be_doubled_is_no_fixed_one(exporter):
    result = export_compat(PowersOfTwo(), (torch.randn(2, 8),), dynamic_axes={"x": {0: "n", 1: "t"}}, exporter=exporter)
    assert not any("is fixed" in note for note in result.notes)
    for length in (2, 4, 16, 64):
        compare(PowersOfTwo(), result, torch.randn(3, length))
