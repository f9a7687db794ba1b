"""`result(...)` takes arguments as forward takes them."""

import pytest
import torch
from torch import nn

from torch_onnx_compat import export_compat
from torch_onnx_compat.errors import CompatError

A, B, C, D = (torch.randn(3, generator=torch.Generator().manual_seed(seed)) for seed in range(4))


class Several(nn.Module):
    def forward(self, a, b, *, kw1, kw2, scale=2.0, bias=None):
        y = a + 3 * b + kw1 - 10 * kw2
        return y * scale if bias is None else y * scale + bias


@pytest.fixture(params=["torchscript", "dynamo"])
def result(request):
    return export_compat(Several().eval(), (A, B), kwargs={"kw2": D, "kw1": C, "scale": 4.0}, exporter=request.param)


def test_keywords_go_by_name(result):
    wanted = Several()(A, B, kw1=C, kw2=D, scale=4.0)
    for found in (
        result(A, B, kw1=C, kw2=D),
        result(A, B, kw2=D, kw1=C),
        result(A, kw2=D, kw1=C, b=B),
        result(kw2=D, kw1=C, b=B, a=A, scale=4.0, bias=None),
    ):
        torch.testing.assert_close(found[0], wanted)


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((A, B), {"kw1": C}, r"3 tensors were given; the file takes 4: a, b, kw\w, kw\w\. Missing: kw2\."),
        ((A, B), {"kw1": C, "kw3": D, "kw2": D}, r"unknown argument 'kw3'; did you mean 'kw[12]'\?"),
        ((A, B, C), {"kw1": C, "kw2": D}, "3 positional arguments were given; forward takes 2: a, b"),
        ((A, B), {"kw1": C, "kw2": D, "a": A}, "'a' was given twice"),
        ((A, 2.0), {"kw1": C, "kw2": D}, "'b' is a float; the file takes a tensor"),
        ((A, B), {"kw1": C, "kw2": D, "scale": 3.0}, "the file holds scale=4.0; export again"),
        ((A, B), {"kw1": C, "kw2": D, "scale": C}, "no input for 'scale', which was no tensor at the export"),
    ],
)
def test_what_does_not_fit_is_said(result, args, kwargs, message):
    with pytest.raises(CompatError, match=message):
        result(*args, **kwargs)


def test_nested_arguments_and_names_of_the_callers(exporter):
    def forward(pair, table):
        return pair[0] - 2 * pair[1] + table["k"]

    result = export_compat(
        forward, ((A, B),), kwargs={"table": {"k": C}}, input_names=["u", "v", "w"], exporter=exporter
    )
    torch.testing.assert_close(result((B, A), {"k": D})[0], B - 2 * A + D)
    torch.testing.assert_close(result(table={"k": D}, pair=(B, A))[0], B - 2 * A + D)


def test_complex_arguments(exporter):
    z = torch.complex(A, B)
    result = export_compat(lambda z, x: z.abs() * x, (z, C), exporter=exporter)
    torch.testing.assert_close(result(x=D, z=z.conj())[0], z.abs() * D)


def test_further_positional_arguments(exporter):
    class Sums(nn.Module):
        def forward(self, x, *others):
            return x - others[0] + 2 * others[1]

    result = export_compat(Sums().eval(), (A, B, C), exporter=exporter)
    torch.testing.assert_close(result(A, C, D)[0], A - C + 2 * D)


def test_a_file_with_inputs_of_its_own_takes_them_in_order():
    model = nn.Conv2d(3, 2, 1).eval()
    image = torch.rand(1, 3, 4, 4)
    result = export_compat(lambda x: model((x - 0.5) / 0.25), image, preprocess="extract")
    assert not result.is_whole
    (name,) = (value.name for value in result.session().get_inputs())
    x = torch.randn(1, 3, 4, 4)
    assert torch.equal(result(x)[0], result(**{name: x})[0])
    with pytest.raises(CompatError, match="2 positional arguments were given"):
        result(x, x)
