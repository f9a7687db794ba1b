"""Counts, histograms and choices, in rows; what their files hold, and every size against eager torch."""

import pytest
import torch
from torch.nn import functional as F
from torch_onnx_compat.symbolics.counting import bincount, cartesian_prod_to_meshgrid, combinations_to_gather, histogram

from torch_onnx_compat.catalogue.catalogue import catalogue
from torch_onnx_compat.catalogue.entry import Declined
from torch_onnx_compat.testing import Example, assert_same_outputs

WEIGHTED = (torch.tensor([2, 0, 5, 2, 2]), torch.tensor([0.5, 1.0, -2.0, 3.0, 0.25]))
CLASSES = torch.tensor([[0, 3, 1], [2, 2, 0]])
ROWS = {"inputs": (torch.randn(3, 4),), "samples": [(torch.randn(5, 4),)]}


EXAMPLES = [
    Example(
        "one_hot_of_number",
        lambda i: (F.one_hot(i[0, 1], 5), F.one_hot(i[1, 2], 1)),
        (CLASSES,),
        leaves=lambda i: F.one_hot(i, 5),
        dynamic=None,
    ),
    Example(
        "bincount_of_weights",
        lambda i, w: (
            torch.bincount(i, w),
            i.bincount(w, minlength=9),
            torch.bincount(i, i, 3),
            torch.bincount(i, minlength=2 * w.shape[0]),
        ),
        WEIGHTED,
        broken=lambda input, weights=None, minlength=0: bincount(input, torch.ones_like(weights), minlength),
        leaves=lambda i, w: torch.bincount(i),
        exporters=("dynamo", "torchscript"),
    ),
    Example(
        "bincount_to_sum",
        lambda i, w: (torch.bincount(i), i.bincount(minlength=9), torch.bincount(i.int(), minlength=2)),
        WEIGHTED,
        leaves=lambda i, w: i + w,
    ),
    Example(
        "histc_of_data",
        lambda x: (torch.histc(x, 5), x.histc(3), torch.histc(x * 0 + 1, 4)),
        (torch.tensor([[0.5, -2.0, 3.0], [1.5, 0.0, -0.3]]),),
        # Bounds that are equal are not widened.
        broken=lambda input, bins=100, min=0, max=0: histogram(input, bins, input.min(), input.max()),
        leaves=lambda x: torch.histc(x, 5, -2, 2),
    ),
    Example(
        "histc_to_counts",
        lambda x, y: (
            torch.histc(x, 5, -2, 2),
            y.histc(bins=4, min=-2.5, max=7),
            torch.histc(x.double(), 3, -1, 3),
        ),
        (
            torch.tensor([[1.5, -2.0, 0.0, 0.25], [-0.5, 7.0, -1.0, 3.0]]),
            torch.tensor([[2.5, 1.0, -0.5, 4.0], [1.0, -3.0, 0.75, 2.0]]),
        ),
        broken=lambda input, bins=100, min=0, max=0: histogram(input, bins, min, max + 1),
    ),
    Example(
        "one_hot_of_largest",
        lambda x: (F.one_hot(x), F.one_hot(input=x[:, 0], num_classes=-1), F.one_hot(x.reshape(-1, 1, 3) % 2)),
        (CLASSES,),
        samples=[(torch.tensor([[5, 0, 0], [1, 7, 3], [0, 0, 2]]),)],
        # As many classes as the example has.
        broken=lambda input, num_classes=-1: (input.unsqueeze(-1) == torch.arange(4)).to(torch.int64),
    ),
    Example(
        "combinations_to_gather",
        lambda x: [
            torch.combinations(vector, r, again)
            for vector in (x[0], x[:, 0])
            for r in (1, 2, 3)
            for again in (False, True)
        ],
        **ROWS,
        broken=lambda input, r=2, with_replacement=False: combinations_to_gather(input, r, with_replacement).flip(0),
        leaves=lambda x: x[0][torch.tensor([[0, 1], [0, 2]])],
    ),
    Example(
        "cartesian_prod_to_meshgrid",
        lambda x: (
            torch.cartesian_prod(x[:, 0], torch.arange(3.0)),
            torch.cartesian_prod(x[0], x[1], torch.arange(3.0)),
            torch.cartesian_prod(x[0]),
        ),
        **ROWS,
        broken=lambda *tensors: cartesian_prod_to_meshgrid(*tensors).flip(0),
        leaves=lambda x: torch.stack(torch.meshgrid(x[0], x[1], indexing="ij")),
    ),
]


@pytest.mark.parametrize(
    ("name", "model", "inputs", "exporter"),
    [
        ("bincount_of_weights", lambda i, w: torch.bincount(i, w), WEIGHTED, "dynamo"),
        ("bincount_to_sum", lambda i, w: torch.bincount(i), WEIGHTED, "torchscript"),
        ("histc_of_data", lambda x: torch.histc(x, 5), torch.randn(2, 3), "torchscript"),
        ("combinations_to_gather", lambda x: torch.combinations(x[0]), torch.randn(3, 4), "torchscript"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_takes_no_loop(name, model, inputs, exporter):
    result = assert_same_outputs(model, inputs, exporter, uses=(name,))
    assert not {"Loop", "If", "NonZero"} & set(result.nodes)


def test_one_hot_compares():
    result = assert_same_outputs(lambda x: F.one_hot(x), CLASSES, "torchscript", uses=("one_hot_of_largest",))
    assert "Equal" in result.nodes


def test_cartesian_prod_at_one_size():
    model = lambda x: torch.cartesian_prod(*x)  # noqa: E731
    result = assert_same_outputs(model, torch.randn(2, 4), "torchscript", uses=("cartesian_prod_to_meshgrid",))
    assert "Concat" in result.nodes


def test_a_number_of_classes_is_left_alone(exporter):
    result = assert_same_outputs(
        lambda x: F.one_hot(x, 4), CLASSES, exporter, samples=[(CLASSES.flip(0),)], verify=False
    )
    assert not result.applied


@pytest.mark.parametrize(("bins", "low", "high", "step"), [(100, 0.0, 10.0, 0.1), (10, -1, 1, 0.025)])
def test_values_on_the_edges_of_bins(bins, low, high, step, exporter):
    """torch.onnx's dynamo exporter counts some of them in the bin beside."""
    x = torch.arange(round(low / step), round(high / step) + 1) * step
    assert_same_outputs(lambda x: torch.histc(x, bins, low, high), x, exporter, uses=("histc_to_counts",))


def test_declines_bounds_of_the_data():
    with pytest.raises(Declined, match="min and max must be given"):
        catalogue()["histc_to_counts"].body(torch.ones(2, 4), 5)


@pytest.mark.parametrize("size", [0, 1, 2, 5])
@pytest.mark.parametrize("r", [1, 2, 3])
@pytest.mark.parametrize("again", [False, True])
def test_combinations_equal_eager(size, r, again):
    x = torch.arange(size)
    assert torch.equal(combinations_to_gather(x, r, again), torch.combinations(x, r, again))


@pytest.mark.parametrize("sizes", [(3, 2), (3, 3, 3), (0, 2), (2,)])
def test_cartesian_prod_equals_eager(sizes):
    vectors = [torch.arange(size) for size in sizes]
    assert torch.equal(cartesian_prod_to_meshgrid(*vectors), torch.cartesian_prod(*vectors))
