"""torch.special, in rows; what needs leave, and what is declined."""

import math

import pytest
import torch
from torch import special

from torch_onnx_compat import export_compat
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.testing import Example, assert_entry, assert_same_outputs

INF, NAN = float("inf"), float("nan")
FLOATS = torch.tensor([[0.5, -2.0, 3.0], [1.5, 0.0, -0.3]])
INTEGERS = torch.tensor([[2, -3, 4], [0, 5, 1]])
TAILS = torch.tensor([[0.5, -2.0, 4.5, 3.0], [8.0, 0.0, -6.0, 1e-4]])


def approximate(name, model, broken, *rows):
    return Example(name, model, (torch.tensor(rows),), broken=broken, options={"allow_approximate": True})


def of_tails(name, model, broken):
    inputs = (TAILS, torch.tensor([[1, 2], [0, -1]]))
    return Example(name, model, inputs, broken=broken, leaves=lambda x, i: torch.erf(x) + i[0, 0])


APPROXIMATE = [
    approximate(
        "digamma_to_log",
        lambda x: (torch.digamma(x), special.psi(x + 0.25)),
        lambda input: torch.log(input) - 0.5 / input,
        [0.5, -2.5, 1e-4, 12.0],
        [1.0, 2.0, 300.0, -0.7],
        [0.0, 3.0, 1.46, 7.0],
    ),
    approximate(
        "lgamma_to_log",
        lambda x: (torch.lgamma(x), special.gammaln(x + 0.25)),
        lambda input: (input - 0.5) * torch.log(input) - input + 0.5 * math.log(2 * math.pi),
        [0.5, -2.5, 1e-4, 12.0],
        [1.0, 2.0, 300.0, -0.7],
        [0.0, -3.0, 1.46, 7.0],
    ),
    approximate(
        "erfinv_to_polynomials",
        lambda x: (torch.erfinv(x), special.erfinv(x * 0.5)),
        lambda input: input * math.sqrt(math.pi) / 2,
        [0.5, -0.999, 1e-4, 0.25],
        [-1.0, 1.0, 0.99999, -0.7],
    ),
    approximate(
        "i0_to_polynomials",
        lambda x: (torch.i0(x), special.i0(x * 0.5)),
        lambda input: 1 + input * input / 4,
        [0.5, -2.0, 0.0, 12.0],
        [-5.0, 3.75, 30.0, -0.7],
    ),
    approximate(
        "i0e_to_polynomials",
        lambda x: (special.i0e(x), special.i0e(x * 0.5)),
        lambda input: torch.exp(-input.abs()) * (1 + input * input / 4),
        [0.5, -2.0, 0.0, 12.0],
        [-5.0, 3.75, 300.0, -0.7],
    ),
]
TAILED = [
    of_tails(
        "erfc_to_polynomial",
        lambda x, i: (torch.erfc(x), x.double().float().erfc(), special.erfc(i), torch.erfc(x.abs()).log()),
        lambda input: 1 - torch.erf(input),
    ),
    of_tails(
        "erfcx_to_polynomial",
        lambda x, i: (special.erfcx(x.abs()), special.erfcx(x.abs() * 100), special.erfcx(x)),
        lambda input: torch.exp(input * input) * (1 - torch.erf(input)),
    ),
    of_tails(
        "log_ndtr_to_polynomial",
        lambda x, i: (special.log_ndtr(x), special.log_ndtr(i), special.log_ndtr(x * 10)),
        lambda input: torch.log(0.5 + 0.5 * torch.erf(input * math.sqrt(0.5))),
    ),
    of_tails(
        "ndtr_to_erfc",
        lambda x, i: (special.ndtr(x), special.ndtr(i)),
        lambda input: 0.5 + 0.5 * torch.erf(input),
    ),
]
EXAMPLES = [
    *APPROXIMATE,
    *TAILED,
    Example(
        "entr_to_where",
        lambda x, i: (special.entr(x), special.entr(i), special.entr(x.double())),
        (FLOATS, INTEGERS),
        broken=lambda input: -input * torch.log(input),
        leaves=lambda x, i: torch.log(x.abs() + 1) + i,
    ),
    Example(
        "xlogy_to_where",
        lambda x, y: (torch.xlogy(x, y), x.xlogy(2.0), torch.xlogy(3, y), special.xlogy(x, y)),
        (
            torch.tensor([[1.5, 0.0, 0.0, 0.0], [2.0, 0.0, 1.0, 3.0]]),
            torch.tensor([[0.5, 0.0, 2.5, INF], [4.0, NAN, 0.0, 3.0]]),
        ),
        broken=lambda input, other: input * torch.log(torch.as_tensor(other)),
    ),
    Example(
        "xlog1py_to_where",
        lambda x, i: (
            special.xlog1py(x.abs(), x.abs()),
            special.xlog1py(0.0, x),
            special.xlog1py(i, x.abs()),
            special.xlog1py(2.0, x.abs()),
        ),
        (FLOATS, INTEGERS),
        broken=lambda input, other: input * torch.log1p(other),
        leaves=lambda x, i: torch.xlogy(x.abs(), 2.0) + i,
    ),
]
EXACT = [row for row in EXAMPLES if row not in APPROXIMATE]


def named(rows):
    return pytest.mark.parametrize("row", rows, ids=lambda row: row.entry)


@named(APPROXIMATE)
def test_waits_for_leave(row, exporter):
    with pytest.raises(CompatError, match="allow_approximate=True admits it"):
        assert_same_outputs(row.model, row.inputs, exporter)


@named(TAILED)
def test_declines_float64(row):
    with pytest.raises(CompatError, match="float64 is not written with all its digits; convert to float32"):
        assert_same_outputs(lambda x, i: row.model(x.double(), i), row.inputs, "torchscript")


@named(EXACT)
def test_no_loops(row):
    assert "Loop" not in assert_entry(row.entry, row.model, row.inputs, "torchscript").nodes


def test_log_ndtr_keeps_its_digits_near_zero(exporter, tmp_path):
    x = torch.tensor([3.0, 5.0, 7.0, 8.0, 8.3, 9.0])
    result = export_compat(lambda x: special.log_ndtr(x), (x,), tmp_path / "model.onnx", exporter=exporter)
    session = result.session()
    (found,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    torch.testing.assert_close(torch.from_numpy(found), special.log_ndtr(x), rtol=1e-4, atol=0)
