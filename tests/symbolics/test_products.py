"""Products of vectors and matrices, in rows; against eager torch at every size; groups of rows; what is declined."""

import pytest
import torch
from torch import nn
from torch.torch_version import TorchVersion

from torch_onnx_compat import Ops, Value
from torch_onnx_compat.catalogue.catalogue import catalogue
from torch_onnx_compat.catalogue.entry import EXPORTERS, Declined
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.testing import Example, assert_same_outputs

NAN = float("nan")
X = torch.tensor([[0.5, -2.0, 3.0, 0.1], [1.5, 0.0, -0.3, 2.0], [-1.0, 0.7, 0.2, 4.0]])
PLAIN = torch.tensor([[1.5, -2.0, 0.0, 0.25], [-0.5, 7.0, -1.0, 3.0]])
OTHER = torch.tensor([[2.5, 1.0, -0.5, 4.0], [1.0, -3.0, 0.75, 2.0]])
INTEGERS = torch.tensor([[2, -3, 4], [0, 5, 1]])
VANDER = torch.tensor([[0.5, -2.0, 3.0], [1.5, 0.0, -0.3]])
GENERATOR = torch.Generator().manual_seed(0)


def matrices(batch, *sizes):
    """Random ones, far from singular, with zeros where elimination begins."""
    m = torch.randn(batch, *sizes, generator=GENERATOR) / 4
    for i in range(min(sizes)):
        m[:, i, sizes[1] - 1 - i] += 2
    m[:, 0, 0] = 0
    return m


def matrix_powers(x):
    powers = (torch.matrix_power(x, n) for n in (0, 1, 2, 3, 7, -1, -2))
    return *powers, torch.linalg.matrix_power(x, n=2), x.matrix_power(2)


def matrix_exponentials(x):
    cold = torch.linalg.matrix_exp(x - 60 * torch.eye(3))
    return torch.matrix_exp(x), torch.linalg.matrix_exp(x * 4), x.matrix_exp(), cold


# Groups of rows


def define_fallback():
    """Defines transformers' operator where transformers, which is not needed here, has not."""

    def products(input: torch.Tensor, weight: torch.Tensor, offs: torch.Tensor) -> torch.Tensor:
        """As transformers' operator: rows after the last group are zero."""
        group = (torch.arange(len(input))[:, None] >= offs).sum(1)
        padded = torch.cat((weight, torch.zeros_like(weight[:1])))
        return (input[:, None] @ padded[group])[:, 0]

    try:
        torch.ops.transformers.grouped_mm_fallback  # noqa: B018
    except AttributeError:
        define = torch.library.custom_op("transformers::grouped_mm_fallback", products, mutates_args=())
        define.register_fake(lambda input, weight, offs: input.new_empty(input.shape[0], weight.shape[2]))


define_fallback()


class Experts(nn.Module):
    """The first rows are multiplied by the first expert's matrix, as many as ask for that expert, and so on."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 16, 8, generator=torch.Generator().manual_seed(0)))

    def forward(self, x, expert):
        ends = (expert[:, None] == torch.arange(4)).sum(0).cumsum(0).to(torch.int32)
        up = nn.functional.grouped_mm(x, self.weight.transpose(1, 2), offs=ends)
        return up, nn.functional.grouped_mm(up, self.weight, offs=ends)


WEIGHT = torch.randn(4, 8, 3, generator=GENERATOR)


def fallback(x, expert):
    ends = (expert[:, None] == torch.arange(4)).sum(0).cumsum(0)
    return torch.ops.transformers.grouped_mm_fallback(x, WEIGHT, ends)


def rows(*experts):
    return torch.randn(len(experts), 8, generator=GENERATOR), torch.tensor(experts)


def product_of_first(op: Ops, x: Value, weight: Value) -> Value:
    return op.MatMul(x, op.Gather(weight, op.constant(0, torch.int64), axis=0))


def broken_grouped_mm(
    op: Ops,
    self: Value,
    mat2: Value,
    offs: Value | None = None,
    bias: Value | None = None,
    out_dtype: int | None = None,
) -> Value:
    return product_of_first(op, self, mat2)


def broken_fallback(op: Ops, input: Value, weight: Value, offs: Value) -> Value:
    return product_of_first(op, input, weight)


HAS_GROUPED_MM = hasattr(nn.functional, "grouped_mm")
needs_grouped_mm = pytest.mark.skipif(not HAS_GROUPED_MM, reason="this torch has no grouped_mm")


def captures_grouped_mm(exporter):
    return HAS_GROUPED_MM and (exporter == "torchscript" or TorchVersion(torch.__version__) >= "2.15")


def skip_capture_of_grouped_mm(exporter):
    if not captures_grouped_mm(exporter):
        pytest.skip("torch.export captures grouped_mm of float32 from torch 2.15 on; before, the export is refused")


GROUPED = [
    Example(
        "grouped_mm",
        Experts(),
        rows(3, 0, 2, 2, 0),
        broken=broken_grouped_mm,
        samples=[rows(1), rows(3, 3, 3, 3), rows(0, 0), rows(*range(4), *range(4), 1)],
        leaves=lambda x, expert: x @ x.T,
        exporters=tuple(filter(captures_grouped_mm, EXPORTERS)),
    ),
    Example(
        "grouped_mm_fallback",
        fallback,
        rows(3, 0, 2, 4, 2, 0),  # no expert is number 4: the last row is none's
        broken=broken_fallback,
        samples=[rows(1), rows(4, 4), rows(3, 3, 3, 3)],
    ),
]


# Rows


EXAMPLES = [
    Example(
        "outer_to_mul",
        lambda x, y: (torch.outer(x[0], y[0]), x[0].outer(y[0].double()), torch.ger(x[0].short(), y[0])),
        (PLAIN, OTHER),
        leaves=lambda x, y: x * y,
    ),
    Example(
        "einsum_of_one_type",
        lambda x, y: (
            torch.einsum("bi,bj->bij", x, y.double()),
            torch.einsum("i,j->ij", torch.arange(3), y[0]),
            torch.einsum("i,j->ij", [torch.arange(3), y[0]]),
        ),
        (PLAIN, OTHER),
        leaves=lambda x, y: torch.einsum("bi,bj->bij", x, y),
    ),
    Example(
        "bilinear_to_matmul",
        nn.Bilinear(4, 4, 3),
        (PLAIN, OTHER),
        leaves=lambda x, y: x * y,
    ),
    Example(
        "matmul_of_small_integers",
        lambda i: (
            i.byte() @ i.byte().t(),
            torch.mm(i.short(), i.short().t()),
            i.to(torch.int8).mv(i[0].to(torch.int8)),
        ),
        (INTEGERS * 17,),
        leaves=lambda i: i @ i.t(),
    ),
    Example(
        "addmm_of_integers",
        lambda i: (
            torch.addmm(i[0, :2], i, i.t(), beta=3, alpha=-2),
            torch.addmm(i.short(), i.short(), i.new_ones(3, 3).short()),
        ),
        (INTEGERS,),
        leaves=lambda i: torch.addmm(i[0, :2].float(), i.float(), i.float().t()),
        dynamic=None,
    ),
    Example(
        "baddbmm_of_nothing",
        lambda a, x: (torch.baddbmm(a, x, x, beta=0), torch.baddbmm(a, x, x, beta=0, alpha=3)),
        (torch.full((2, 3, 3), NAN), torch.randn(2, 3, 3, generator=GENERATOR)),
        leaves=lambda a, x: torch.baddbmm(x, x, x, beta=2),
    ),
    Example(
        "inner_to_matmul",
        lambda x, y: (torch.inner(x, y), torch.inner(x[0], y[0]), torch.inner(x, y[0]), torch.inner(x[0, 0], y)),
        (PLAIN, OTHER),
    ),
    Example(
        "vdot_to_sum",
        lambda x: (torch.vdot(x[0], x[1]), x[:, 0].vdot(x[:, 1])),
        (torch.randn(4, 3, generator=GENERATOR),),
        broken=lambda input, other: input.sum(),
        leaves=lambda x: torch.dot(x[0], x[1]),
    ),
    Example(
        "vecdot_to_sum",
        lambda x: (torch.linalg.vecdot(x, x), torch.linalg.vecdot(x, x[:1], dim=0), torch.linalg.vecdot(x[0], x)),
        (X,),
        broken=lambda x, y, *, dim=-1: (x * y).sum(-1),
        leaves=lambda x: torch.dot(x[0], x[1]),
    ),
    Example(
        "addbmm_to_matmul",
        lambda x: (
            torch.addbmm(x[0, :, None], x[:, :, None], x[:, None]),
            (x[:1] * NAN).addbmm(x[:, :, None], x[:, None], beta=0, alpha=3),
        ),
        (X,),
        broken=lambda input, batch1, batch2, *, beta=1, alpha=1: beta * input + torch.bmm(batch1, batch2).sum(0),
        leaves=lambda x: torch.bmm(x[:, :, None], x[:, None]),
    ),
    Example(
        "addmv_to_matmul",
        lambda x: (
            torch.addmv(x[:, 0], x, x[0]),
            torch.addmv(x[:, 0], x, x[0], beta=2, alpha=0.5),
            torch.addmv(x[:, 0] * NAN, x, x[0], beta=0),
        ),
        (X,),
        broken=lambda input, mat, vec, *, beta=1, alpha=1: beta * input + torch.mv(mat, vec),
        leaves=lambda x: torch.mv(x, x[0]),
    ),
    Example(
        "addr_to_mul",
        lambda x: (
            torch.addr(x, x[:, 0], x[0]),
            x.addr(x[:, 0], x[0], beta=0.5, alpha=2),
            torch.addr(x, x[:, 0], x[0], beta=0),
        ),
        (X,),
        broken=lambda input, vec1, vec2, *, beta=1, alpha=1: input + alpha * vec1.unsqueeze(1) * vec2,
        leaves=lambda x: torch.outer(x[:, 0], x[0]),
    ),
    Example(
        "kron_to_mul",
        lambda x, i: (torch.kron(x, i), torch.kron(x[0], x[1]), torch.kron(i, x[:, :2]), torch.kron(x[0], i)),
        (PLAIN, INTEGERS),
        broken=lambda input, other: catalogue()["kron_to_mul"].body(other, input),
    ),
    Example(
        "multi_dot_to_matmul",
        lambda x, y: (
            torch.linalg.multi_dot([x, y, y.mT]),
            torch.linalg.multi_dot((x[0], y, y[0])),
            torch.linalg.multi_dot([x, y, y, y[0]]),
        ),
        (torch.randn(2, 4, generator=GENERATOR), torch.randn(4, 4, generator=GENERATOR)),
        dynamic={"x": {0: "batch"}},
        broken=lambda tensors, *more: tensors[0] @ tensors[2],
        leaves=lambda x, y: x @ y,
    ),
    Example(
        "matrix_power_to_matmul",
        matrix_powers,
        (matrices(2, 3, 3),),
        samples=[(matrices(5, 3, 3),)],
        broken=lambda A=None, n=1, *, input=None: A * 1,
        leaves=lambda x: x @ x,
    ),
    Example(
        "matrix_exp_to_powers",
        matrix_exponentials,
        (matrices(2, 3, 3),),
        samples=[(matrices(5, 3, 3),)],
        broken=lambda A=None, *, input=None: A * 1,
        leaves=lambda x: x @ x,
        options={"allow_approximate": True},
    ),
    Example(
        "cov_to_matmul",
        lambda x, w: (
            torch.cov(x),
            x.cov(correction=0),
            torch.cov(x[0]),
            torch.cov(x, fweights=w),
            torch.cov(x, aweights=w * 0.5),
            torch.cov(x, fweights=w, aweights=w * 0.3),
        ),
        (PLAIN, torch.tensor([2, 3, 1, 1])),
        dynamic=None,
        broken=lambda input, **options: input @ input.T if input.dim() == 2 else input.sum(),
    ),
    Example(
        "corrcoef_to_matmul",
        lambda x, y: (torch.corrcoef(x), torch.cat((x, y)).corrcoef()),
        (PLAIN, OTHER),
        dynamic=None,
        broken=lambda input: torch.ones_like(input @ input.T),
    ),
    Example(
        "vander_to_pow",
        lambda x: (
            torch.vander(x[0]),
            torch.vander(x[0], 4),
            torch.vander(x[1], increasing=True),
            torch.vander(x[:, 0], 3),
        ),
        (VANDER,),
        broken=lambda x, N=None, increasing=False: x[:, None].expand(-1, 3),
        leaves=lambda x: x**2,
    ),
    Example(
        "linalg_vander_to_pow",
        lambda x: (torch.linalg.vander(x), torch.linalg.vander(x, N=4), torch.linalg.vander(x[0])),
        (VANDER,),
        broken=lambda x, *, N=None: x[..., None].expand(*x.shape, 3),
        leaves=lambda x: x**2,
    ),
    *GROUPED,
]
UNROLLED = [row for row in EXAMPLES if row not in GROUPED]


@pytest.mark.one_exporter
@pytest.mark.parametrize(
    ("row", "exporter"), [pytest.param(row, e, id=f"{row.entry}-{e}") for row in UNROLLED for e in row.needed_on()]
)
def test_writes_no_loops(row, exporter):
    result = assert_same_outputs(row.model, row.inputs, exporter, dynamic=row.dynamic, verify=False, **row.options)
    assert not {"If", "Loop", "NonZero"} & set(result.nodes)


@pytest.mark.parametrize("size", [1, 2, 5, 8])
def test_equals_eager(size):
    x = matrices(20, size, size).double() + torch.eye(size) / 8
    for n in (0, 1, 2, 5, -1, -3):
        found = catalogue()["matrix_power_to_matmul"].body(x, n)
        torch.testing.assert_close(found, torch.linalg.matrix_power(x, n))
    for factor in (0, 1e-6, 1, 50):
        found, wanted = catalogue()["matrix_exp_to_powers"].body(x * factor), torch.linalg.matrix_exp(x * factor)
        torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-12 * wanted.abs().max().item())


def test_beta_0_drops_the_input():
    def model(x):
        nothing, column, row = x * NAN, x[:, 0], x[0]
        return (
            torch.addbmm(nothing[0], x[:, :, None], x[:, None], beta=0),
            torch.addmv(nothing[:, 0], x, row, beta=0),
            torch.addr(nothing, column, row, beta=0),
        )

    uses = ("addbmm_to_matmul", "addmv_to_matmul", "addr_to_mul")
    assert_same_outputs(model, X, "torchscript", uses=uses)
    assert_same_outputs(model, X, "dynamo", uses=uses[:2])


@pytest.mark.filterwarnings("ignore:.*chain_matmul is deprecated")
def test_chain_matmul():
    args = (torch.randn(2, 4), torch.randn(4, 4))
    assert_same_outputs(lambda x, y: torch.chain_matmul(x, y, y), args, "torchscript", uses=("multi_dot_to_matmul",))


@pytest.mark.parametrize(
    ("entry", "args", "reason"),
    [
        ("vdot_to_sum", [torch.ones(3, dtype=torch.complex64)] * 2, "the vectors must be real"),
        ("matrix_power_to_matmul", [torch.ones(9, 9), -1], "must have 1 to 8 rows, got 9"),
        ("cov_to_matmul", [torch.tensor(1.0)], "must have 1 or 2 axes, got 0"),
    ],
)
def test_declines(entry, args, reason):
    with pytest.raises(Declined, match=reason):
        catalogue()[entry].body(*args)


@pytest.mark.parametrize(
    ("function", "axes"),
    [(torch.cov, {0: "batch"}), (torch.corrcoef, {0: "batch"}), (torch.matrix_exp, {0: "size", 1: "size"})],
    ids=["cov", "corrcoef", "matrix_exp"],
)
def test_declines_sizes_that_vary(function, axes):
    with pytest.raises(CompatError, match=function.__name__):
        assert_same_outputs(
            lambda x: function(x), torch.eye(3), "torchscript", dynamic={"x": axes}, allow_approximate=True
        )


def test_matrix_exp_needs_permission():
    with pytest.raises(CompatError, match="matrix_exp"):
        assert_same_outputs(matrix_exponentials, matrices(2, 3, 3), "torchscript")


# Groups of rows


@pytest.mark.parametrize("opset", [11, None])
@pytest.mark.parametrize(
    ("row", "products"),
    [
        pytest.param(GROUPED[0], 8, marks=needs_grouped_mm, id="grouped_mm"),
        pytest.param(GROUPED[1], 4, id="grouped_mm_fallback"),
    ],
)
def test_one_product_for_each_group(row, products, exporter, opset):
    if row.entry == "grouped_mm":
        skip_capture_of_grouped_mm(exporter)
    options = {"dynamic": "batch", "samples": row.samples, "opset": opset}
    result = assert_same_outputs(row.model, row.inputs, exporter, uses=(row.entry,), **options)
    assert result.nodes["MatMul"] == products


@needs_grouped_mm
def test_grouped_mm_of_three_axes_is_one_product(exporter):
    skip_capture_of_grouped_mm(exporter)
    example = (torch.randn(3, 4, 8), torch.randn(3, 8, 16))
    options = {"uses": ("grouped_mm",), "dynamic": {"mat_a": {1: "rows"}}}
    result = assert_same_outputs(nn.functional.grouped_mm, example, exporter, **options)
    assert set(result.nodes) - {"Constant"} == {"MatMul"}


@needs_grouped_mm
def test_grouped_mm_declines_groups_of_columns():
    def model(x, y):
        return nn.functional.grouped_mm(x, y, offs=torch.tensor([4, 8], dtype=torch.int32))

    with pytest.raises(CompatError, match="groups must be of rows"):
        assert_same_outputs(model, (torch.randn(4, 8), torch.randn(8, 4)), "torchscript")


def test_grouped_products_decline_a_number_of_groups_that_varies():
    def model(x, weight, ends):
        return torch.ops.transformers.grouped_mm_fallback(x, weight, ends)

    example = (torch.randn(5, 8), torch.randn(4, 8, 3), torch.tensor([1, 2, 3, 5]))
    with pytest.raises(CompatError, match="the number of groups must be fixed"):
        assert_same_outputs(model, example, "torchscript", dynamic={"weight": {0: "groups"}, "ends": {0: "groups"}})
