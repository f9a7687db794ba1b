"""Assignments to parts of a tensor, in rows; the same through both exporters for every number of places."""

import pytest
import torch

from torch_onnx_compat.testing import Example, assert_same_outputs

FIRST, SECOND = torch.tensor([0, 1]), torch.tensor([2, -1])
EVERY = slice(None)
ROW = torch.arange(8.0)


def written(x, key, value):
    y = x.clone()
    y[key] = value
    return y


def write_elsewhere(self, key, value):
    self.copy_(self + 1)


def writes_with_new_axes(x, v):
    return (
        written(x, (EVERY, None, 1), v[:, None, 0]),
        written(x, (None, ..., 0), v[..., 1]),
        written(x, (EVERY, slice(1, 3), None), v[:, :1, None]),
        written(x, (0, None), 3.0),
    )


def writes_to_split_indices(x, v):
    return (
        written(x, (torch.tensor([0, -1]), EVERY, SECOND), 4.0),
        written(x, (FIRST, EVERY, SECOND), v[:, :3]),
        written(x, (FIRST[:, None], EVERY, torch.tensor([2, 0, -1])), 1.0),
    )


def writes_smaller_values(x, v):
    return (
        written(x, (EVERY, slice(1, 3)), v[0, :2]),
        written(x, (EVERY, slice(-2, None)), v[:, :1]),
        *(written(x, torch.tensor([0, 2]), v[:1]), written(x, 1, v[0]), written(x, slice(1, None), v[0])),
        written(torch.stack((x, x), 1), (EVERY, EVERY, slice(None, None, 2)), v[:, None, :1]),
        written(x, ..., v[0]),
    )


def writes_single_axes(x, kinds):
    """The example has one place of this kind."""
    mask, places = kinds == 1, kinds[0] == 1
    order = (kinds[0] * 9 + torch.arange(kinds.shape[1])).argsort()  # without ties
    return (
        *(
            written(x, mask, x[mask] * 2),
            written(x, mask, x[mask].amax(1, keepdim=True)),
            written(x[0], places, x[mask]),
        ),
        *(written(x, (EVERY, places), x[:, places] + ROW), written(x, (0, places), x[0, places] + ROW)),
        *(written(x, (EVERY, order), x), written(x, (EVERY, order[:, None], FIRST), x[:, :, :2])),
        *(written(x.mT, (..., order), x.mT), written(x.mT, (..., places), x.mT[..., places])),
        written(x, x > 1.5, x[x > 1.5] * 2),
    )


def writes_beside_masks(x, kinds):
    places, y = kinds[0] == 1, x[0]
    return (
        *(written(y, (places, slice(0, 2)), y[places][:, 2:4]), written(y, (places, slice(2, None)), 0.0)),
        *(
            written(y, (places, 0), 3),
            written(y, (places, 0), y[places, 1]),
            written(y, (places, slice(0, 2)), ROW[:2]),
        ),
        *(written(x, (EVERY, places, slice(1, None)), ROW[1:]), written(y, (places, slice(1, 3)), x.amax())),
        written(x, (0, places, slice(1, None, 2)), x[0, places, ::2]),
    )


def writes_beside_wide_masks(x, kinds):
    mask = kinds == 1
    return (
        *(written(x, (mask, slice(0, 2)), x[mask][:, 2:4]), written(x, (mask, slice(2, None)), 0.0)),
        *(written(x, (mask, 0), 3), written(x, (mask, 0), x[mask, 1]), written(x, (mask, slice(0, 2)), ROW[:2])),
    )


def write_of_several(x, top, width):
    """At an index for each batch and one for each place, which broadcast together to sizes that vary."""
    batch = torch.arange(x.shape[0])[:, None]
    first, second, third = x.clone(), x.clone(), x.clone()
    first[batch, top] = x[:, : top.shape[1]] * 2
    second.index_put_((batch, top), x[:, :1] + 1)
    third[batch, top, torch.arange(width)[None, :2]] = x[:, :2, 0]
    return first, second, third


def write_beside_slices(x, top, width):
    batch = torch.arange(x.shape[0])[:, None]
    behind, before, part = x.clone(), x.repeat(3, 1, 1, 1), x.clone()
    behind[batch, top, :] = x[:, : top.shape[1]] * 2
    before[:, batch, top] = x[None, :, : top.shape[1]] * 3
    part[batch, top, 1:] = x[:, : top.shape[1], 1:] - 1
    part[batch, top, 0] = x[:, : top.shape[1], 1]
    behind[batch, top - x.shape[1], :] += x[:, :1]
    return behind, before, part


TOP = torch.tensor([[1, 2], [0, 3], [2, 1]])


def eager_refuses(writes):
    """Whether eager torch does: 2.6 takes a slice behind a mask of two axes for that of the second one."""
    try:
        writes(torch.randn(1, 4, 8), torch.ones(1, 4))
    except IndexError:
        return True
    return False


EAGER_REFUSES = pytest.mark.skipif(eager_refuses(writes_beside_wide_masks), reason="eager torch refuses it")

ROWS = {"kinds": {1: "rows"}, "x": {1: "rows"}}
KINDS = torch.tensor([[0, 1, 2]])
OTHER_KINDS = [
    (torch.randn(1, len(row), 8), torch.tensor([row])) for row in ([1], [1, 1, 0, 1], [2, 0, 0], [1] * 7, [0, 1])
]

EXAMPLES = [
    Example(
        "setitem_of_none",
        lambda x, v: written(x, (EVERY, None, 1), v[:, :1]),
        (torch.randn(2, 4, 3), torch.randn(2, 4, 3)),
        broken=write_elsewhere,
        leaves=lambda x, v: written(x, (EVERY, 1), v[:, 0]),
    ),
    Example(
        "setitem_of_none",
        writes_with_new_axes,
        (torch.randn(2, 4, 3), torch.randn(2, 4, 3)),
        broken=write_elsewhere,
        dynamic=None,
    ),
    Example(
        "setitem_of_split_indices",
        writes_to_split_indices,
        (torch.randn(2, 3, 4, 4), torch.randn(2, 4, 4)),
        broken=write_elsewhere,
        dynamic=None,
        leaves=lambda x, v: written(x, (FIRST, SECOND), 5.0),
    ),
    Example(
        "setitem_to_expanded",
        writes_smaller_values,
        (torch.randn(3, 6), torch.randn(3, 6)),
        broken=write_elsewhere,
        samples=[(torch.randn(5, 6), torch.randn(5, 6))],
        leaves=lambda x, v: (
            written(x, (EVERY, slice(1, 3)), v[:, :2]),
            written(written(x, x > 0, 2.0), (EVERY, 0), 1.0),
        ),
    ),
    Example(
        "setitem_of_single_axes",
        writes_single_axes,
        (torch.randn(1, 3, 8), KINDS),
        dynamic=ROWS,
        samples=OTHER_KINDS,
        broken=write_elsewhere,
        leaves=lambda x, kinds: written(x, kinds == 1, ROW),
    ),
    Example(
        "setitem_of_single_axes",
        writes_beside_masks,
        (torch.randn(1, 3, 8), KINDS),
        dynamic=ROWS,
        samples=OTHER_KINDS,
        broken=write_elsewhere,
    ),
    Example(
        "index_put_to_expanded",
        lambda x, top: (
            x.index_put((torch.arange(x.shape[0])[:, None], top), x[:, :2] + 1),
            torch.index_put(x, (top[:, 0] * 0,), x[0]),
        ),
        (torch.randn(3, 6, 4), TOP),
        dynamic={"x": {0: "batch", 1: "places"}, "top": {0: "batch"}},
        samples=[(torch.randn(2, 1, 4), torch.zeros(2, 2, dtype=torch.int64))],
        broken=lambda self, indices, values, accumulate=False: self + 1,
        leaves=lambda x, top: (x.index_put((top[:, 0],), x.amax()), x.index_put((x > 0,), x[0, 0, :1])),
    ),
]


@pytest.mark.parametrize("count", [0, 1, 2])
@pytest.mark.one_exporter
@pytest.mark.parametrize(
    "writes",
    [
        writes_single_axes,
        writes_beside_masks,
        pytest.param(writes_beside_wide_masks, marks=EAGER_REFUSES),
    ],
)
def test_right_for_any_number_of_places(writes, count, exporter):
    """How many places the example has at the mask is nothing that the file knows."""
    kinds = torch.tensor([[1] * count + [0] * (4 - count)])
    x = torch.randn(1, 4, 8)
    assert_same_outputs(writes, (x, kinds), exporter, dynamic=ROWS, samples=OTHER_KINDS)


def test_a_row_at_a_mask_is_a_choice(exporter):
    def model(x):
        return written(x, x[:, 0] > 0, torch.arange(4.0)), written(x, x > 0, x.amax())

    result = assert_same_outputs(model, torch.randn(3, 4), exporter, dynamic="batch", samples=[(torch.zeros(2, 4),)])
    assert "Where" in result.nodes
    assert not {"ScatterND", "NonZero"} & set(result.nodes)


@pytest.mark.parametrize("write", [write_of_several, write_beside_slices])
def test_right_at_several_indices_of_any_size(write, exporter):
    model = lambda x, top: write(x, top, 4)  # noqa: E731
    samples = [(torch.randn(b, n, 4), torch.randint(0, n, (b, 1)).repeat(1, 2)) for b, n in ((3, 7), (1, 2), (5, 4))]
    dynamic = {"x": {0: "batch", 1: "places"}, "top": {0: "batch"}}
    assert_same_outputs(model, (torch.randn(3, 6, 4), TOP), exporter, dynamic=dynamic, samples=samples)
