"""Diagonals and triangles, in rows; against eager torch at every shape and offset; what is declined."""

import itertools

import pytest
import torch
from torch_onnx_compat.symbolics import diagonals

from torch_onnx_compat import Ops, Value, export_compat
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.testing import Example, assert_entry, assert_same_outputs

X = torch.randn(3, 4)
MATRIX = {"inputs": (X,), "samples": [(torch.randn(5, 4),)]}


def scatter(x, v):
    square = x[:, :, 0]
    return (
        torch.diagonal_scatter(x, v, 1, 1, 2),
        torch.diagonal_scatter(x, v[:, :3], -1, 1, 2),
        torch.diagonal_scatter(x, v, 1, -2, -1),
        torch.diagonal_scatter(square, square.diagonal() * 2),
    )


def fill(x):
    y, z, tall = x.clone(), x.t().clone(), x[0].reshape(4, 1).repeat(2, 2)
    y.fill_diagonal_(9.0)
    z.fill_diagonal_(-1)
    tall.fill_diagonal_(5.0, wrap=True)
    return y, z, tall, (x * 9).long().fill_diagonal_(7)


def write(x):
    y = x.clone()
    y.diagonal(dim1=-2, dim2=-1).fill_(1.0)
    y.diagonal(1, 1, 2).mul_(2.0)
    return y, y.diagonal(-1, -2, -1)


def diagonal_of_the_transposed(op: Ops, self: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    return diagonals.diagonal_of_bool(op, self, offset, dim2, dim1)


def write_across(x):
    y, z = x.clone(), (x * 5).long()
    y.diagonal(0, 2, 0).fill_(1.0)
    y.diagonal(-1, 0, 1).mul_(2.0)
    z.diagonal(1, 1, 0).add_(3)
    return y, z, y.transpose(0, 1).diagonal()


def triangle(indices, other):
    """A row of tril_indices or triu_indices, whose wrong body is the other one."""

    def model(x):
        size = x.shape[0]
        return (
            indices(size, size),
            indices(size, 4, 1),
            indices(4, size, offset=-2),
            indices(size, 4, dtype=torch.int32),
        )

    return Example(
        f"{indices.__name__}_to_nonzero",
        model,
        **MATRIX,
        broken=getattr(diagonals, f"{other.__name__}_to_nonzero"),
        leaves=lambda x: x[indices(3, 3)[0]],
    )


EXAMPLES = [
    Example(
        "diagonal_of_bool",
        lambda x: (
            (x > 0).diagonal(),
            torch.diagonal(x > 0, 1),
            (x * 2**40).long().diagonal(),
            (x * 99).int().diagonal(-1, 1, 0),
            x.double().diagonal(1) + 2**-40,
            x.half().diagonal(-2),
            (x / (x[:1] - x)).diagonal(1),
        ),
        **MATRIX,
        broken=diagonal_of_the_transposed,
        leaves=lambda x: x.flip(0),
    ),
    Example(
        "diagonal_scatter",
        write_across,
        (torch.randn(2, 3, 5),),
        broken=lambda op, self, src, offset=0, dim1=0, dim2=1: op.Identity(self),
        leaves=lambda x: x.diagonal(0, 1, 2),
    ),
    Example(
        "diag_to_where",
        lambda x: (torch.diag(x), x.diag(1), torch.diag(x[:, 0]), torch.diag(x[0], -2), torch.diag(x[:, 1], 1)),
        **MATRIX,
        broken=lambda input, diagonal=0: diagonals.diag_to_where(input, -diagonal),
        leaves=lambda x: x.diagonal(1),
    ),
    Example(
        "diag_embed_to_where",
        lambda x: (
            torch.diag_embed(x),
            x.diag_embed(-2),
            torch.diag_embed(x, 1, 0, -2),
            x.t().diag_embed(1),
            x.long().diag_embed(),
            (x > 0).diag_embed(1),
            (x / 0).diag_embed(),
        ),
        **MATRIX,
        broken=lambda input, offset=0, dim1=-2, dim2=-1: diagonals.diag_embed_to_where(input, -offset, dim1, dim2),
        leaves=lambda x: x.diagonal(),
    ),
    Example(
        "diagflat_to_where",
        lambda x: (torch.diagflat(x), x.diagflat(1), torch.diagflat(x[0], -1), torch.diagflat(x[0, 0])),
        **MATRIX,
        broken=lambda input, offset=0: diagonals.diagflat_to_where(input, -offset),
        leaves=lambda x: x.reshape(-1),
    ),
    Example(
        "block_diag_to_cat",
        lambda x: (
            torch.block_diag(x, torch.ones(2, 3), x[:1]),
            torch.block_diag(x[0], torch.tensor(3.0), x),
            torch.block_diag(x),
        ),
        **MATRIX,
        broken=lambda *tensors: diagonals.block_diag_to_cat(*reversed(tensors)),
        leaves=lambda x: torch.cat((x, x)),
    ),
    Example(
        "diagonal_to_slice",
        write,
        (torch.randn(2, 3, 5),),
        options={"exclude": ["diagonal_of_bool", "diagonal_scatter"]},
        broken=lambda input, offset=0, dim1=0, dim2=1: diagonals.diagonal_to_slice(input, 0, dim1, dim2),
        leaves=lambda x: x.transpose(1, 2).diagonal(0, 1, 2),
    ),
    Example(
        "linalg_diagonal_to_diagonal",
        lambda x: (
            torch.linalg.diagonal(x),
            torch.linalg.diagonal(x, offset=1),
            torch.linalg.diagonal(x, offset=-2, dim1=1, dim2=2),
            torch.linalg.diagonal(x[:, 0], offset=-1, dim1=1, dim2=0),
        ),
        (torch.randn(2, 3, 4),),
        broken=lambda A, *, offset=0, **dims: diagonals.linalg_diagonal_to_diagonal(A, offset=-offset, **dims),
        leaves=lambda x: torch.diagonal(x, 0, 1, 2),
    ),
    Example(
        "trace_to_sum",
        lambda x: (
            torch.trace(x),
            x.t().trace(),
            (x * 5).long().trace(),
            torch.trace(torch.where(x == x[0, 1], torch.inf, x)),
        ),
        (torch.randn(4, 3),),
        # An infinite cell beside the diagonal becomes NaN.
        broken=lambda input: (diagonals.diagonal_mask(*input.shape, 0, input) * input).sum(),
        leaves=lambda x: torch.diag(x),
    ),
    Example(
        "diagonal_scatter_to_where",
        scatter,
        (torch.randn(2, 4, 6), torch.randn(2, 4)),
        samples=[(torch.randn(5, 4, 6), torch.randn(5, 4))],
        broken=lambda input, src, offset=0, *dims: diagonals.diagonal_scatter_to_where(input, src, -offset, *dims),
        leaves=lambda x, v: x.diagonal(1, 1, 2) + v,
        options={"exclude": ["diagonal_scatter"]},
    ),
    Example(
        "fill_diagonal_to_where",
        fill,
        **MATRIX,
        broken=lambda self, fill_value, wrap=False: diagonals.fill_diagonal_to_where(self, fill_value),
        leaves=lambda x: x.masked_fill(x > 0, 9.0),
    ),
    triangle(torch.tril_indices, torch.triu_indices),
    triangle(torch.triu_indices, torch.tril_indices),
]


# What the files hold


@pytest.mark.parametrize(
    ("name", "model", "node"),
    [
        ("diag_to_where", lambda x: torch.diag(x[0]), "Where"),
        ("diag_embed_to_where", lambda x: torch.diag_embed(x), "Where"),
        ("diagflat_to_where", lambda x: torch.diagflat(x), "Where"),
        ("block_diag_to_cat", lambda x: torch.block_diag(x, 2 * x), "Concat"),
        ("diagonal_scatter_to_where", lambda x: torch.diagonal_scatter(x, x[:, 0], 1), "Where"),
        ("fill_diagonal_to_where", lambda x: x.clone().fill_diagonal_(9.0), "Where"),
        ("tril_indices_to_nonzero", lambda x: torch.tril_indices(x.shape[0], 4), "NonZero"),
        ("triu_indices_to_nonzero", lambda x: torch.triu_indices(x.shape[0], 4), "NonZero"),
    ],
)
def test_nodes_at_a_fixed_size(name, model, node):
    assert node in assert_entry(name, model, X, "torchscript").nodes


def test_linalg_diagonal_is_one_gather():
    model = lambda x: torch.linalg.diagonal(x, offset=1)  # noqa: E731
    result = assert_entry("linalg_diagonal_to_diagonal", model, torch.randn(2, 3, 4), "torchscript", dynamic="batch")
    assert result.nodes["Gather"] == 1
    assert "If" not in result.nodes


def test_trace_has_no_branches(exporter):
    result = assert_entry("trace_to_sum", lambda x: torch.trace(x), torch.randn(4, 3), exporter, dynamic="batch")
    assert not {"If", "Loop", "NonZero"} & set(result.nodes)


@pytest.mark.parametrize("offset", [0, 2, -2, 9, -9])
def test_diagonals_of_sizes_that_vary_at_the_lowest_opset(offset):
    model = lambda x: x.diagonal(offset, 0, 1)  # noqa: E731
    sizes = {"x": {0: "rows", 1: "columns"}}
    samples = [(torch.randn(rows, columns, 2),) for rows, columns in ((3, 8), (8, 3))]
    options = {"dynamic": sizes, "samples": samples, "opset": 11}
    assert_entry("diagonal_of_bool", model, torch.randn(5, 6, 2), "torchscript", **options)


def test_diagonals_in_another_order_are_left_alone_on_dynamo():
    next(row for row in EXAMPLES if row.entry == "diagonal_to_slice").assert_leaves_alone("dynamo")


# Against eager torch


@pytest.mark.parametrize("shape", [(3,), (1,), (0,), (), (2, 3), (2, 1), (0, 2), (2, 0)])
@pytest.mark.parametrize("offset", [0, 1, -1, 2, -2])
def test_matrices_equal_eager(shape, offset):
    x = torch.randn(shape)
    assert torch.equal(diagonals.diagflat_to_where(x, offset), torch.diagflat(x, offset))
    if shape:
        assert torch.equal(diagonals.diag_to_where(x, offset), torch.diag(x, offset))
        assert torch.equal(diagonals.diag_embed_to_where(x, offset), torch.diag_embed(x, offset))
        for dims in ((0, -1), (-1, 0)):
            assert torch.equal(diagonals.diag_embed_to_where(x, offset, *dims), torch.diag_embed(x, offset, *dims))


@pytest.mark.parametrize(
    "blocks",
    [
        [torch.ones(2, 3), torch.ones(2).long()],
        [torch.ones(0), torch.ones(2, 2)],
        [torch.tensor(float("inf"))],
    ],
    ids=["types", "empty", "infinite"],
)
def test_blocks_equal_eager(blocks):
    assert torch.equal(diagonals.block_diag_to_cat(*blocks), torch.block_diag(*blocks))


@pytest.mark.parametrize("shape", [(3, 3), (2, 5), (5, 2), (1, 4)])
def test_views_equal_eager(shape):
    x = torch.randn(2, *shape)
    for offset in range(-4, 5):
        diagonal, wanted = diagonals.diagonal_to_slice(x, offset, 1, 2), x.diagonal(offset, 1, 2)
        if wanted.numel():
            assert diagonal.data_ptr() == wanted.data_ptr()
            assert torch.equal(diagonal, wanted)
        else:
            assert diagonal is NotImplemented


def test_scatter_equals_eager():
    x = torch.randn(3, 4, 5)
    for dims, offset in itertools.product(((0, 1), (1, 2), (2, 0), (-1, 1)), (-3, -2, -1, 0, 1, 2)):
        src = torch.randn_like(x.diagonal(offset, *dims))
        if src.numel():
            written = diagonals.diagonal_scatter_to_where(x, src, offset, *dims)
            assert torch.equal(written, torch.diagonal_scatter(x, src, offset, *dims))


@pytest.mark.parametrize("shape", [(3, 3), (2, 5), (5, 2), (7, 2), (7, 3), (1, 1), (9, 1)])
@pytest.mark.parametrize("wrap", [False, True])
def test_fill_equals_eager(shape, wrap):
    x = torch.randn(shape)
    filled = diagonals.fill_diagonal_to_where(x.clone(), 4.0, wrap)
    assert torch.equal(filled, x.clone().fill_diagonal_(4.0, wrap))


# What is declined


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (lambda x: x.repeat(4, 1, 1).fill_diagonal_(1.0), r"two axes|not supported"),
        (lambda x: x.clone().fill_diagonal_(1.0, wrap=True), r"fixed sizes|not supported"),
    ],
    ids=["volume", "wrap"],
)
def test_fill_declines(model, reason):
    with pytest.raises(CompatError, match=reason):
        assert_same_outputs(model, torch.randn(4, 4), "torchscript", dynamic="batch")


def test_scatter_to_a_diagonal_that_may_be_empty(exporter):
    def double(x):
        return torch.diagonal_scatter(x, torch.diagonal(x, 1) * 2, 1)

    sizes = {"x": {0: "rows", 1: "columns"}}
    samples = [(torch.randn(shape),) for shape in ((1, 1), (4, 1), (2, 3), (5, 2))]
    assert_same_outputs(
        double, torch.randn(3, 3), exporter, dynamic=sizes, samples=samples, uses=("diagonal_scatter_to_where",)
    )


@pytest.mark.parametrize("offset", [3, -3, 7])
def test_scatter_to_no_diagonal(offset):
    x = torch.randn(3, 3)
    assert torch.equal(diagonals.diagonal_scatter_to_where(x, x.diagonal(offset), offset), x)


def test_an_offset_that_a_size_decides():
    """What the graph computes is no number for an entry: it declines, and names the argument."""
    with pytest.raises(CompatError, match="diagonal_of_bool declined: offset must be known"):
        export_compat(
            lambda x: torch.diagonal(x, x.shape[0] - 4), torch.rand(5, 6), dynamic="batch", exporter="torchscript"
        )


def test_derivatives_in_forward_are_refused_in_words():
    with pytest.raises(CompatError, match="offset must be known"):
        export_compat(lambda x: torch.func.jacfwd(torch.sin)(x), torch.rand(5), dynamic="batch", exporter="torchscript")
