import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS, Declined
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "quantile_to_topk"
INF, NAN = float("inf"), float("nan")
METHODS = ("lower", "higher", "nearest", "midpoint")
Q = torch.tensor([0.0, 0.25, 0.7, 1.0])
ARGS = (torch.tensor([[1.5, -2.0, 3.0, 0.5, 8.0], [0.0, 7.5, -1.0, 2.0, NAN]]),)


def many(x):
    return (
        *(x.quantile(0.3), x.quantile(0.9, dim=1), torch.quantile(x, Q, 1), x.quantile(0.4, 0, keepdim=True)),
        *(x.quantile(0.6, dim=1, interpolation=method) for method in METHODS),
    )


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter)


def test_matches_any_batch(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic="batch")


@given(
    st.lists(st.sampled_from([-2.0, 0.0, 1.0, 2.5, 7.0, INF, NAN]), min_size=1, max_size=12),
    st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.77, 1.0]),
    st.sampled_from(["linear", *METHODS]),
    st.booleans(),
)
@settings(max_examples=300, deadline=None)
def test_equals_eager(values, q, method, keepdim):
    x = torch.tensor(values).reshape(-1, 1).repeat(1, 2)
    for probability in (q, torch.tensor([q, 0.5])):
        for dim in (None, 0, 1):
            found = catalogue()[NAME].body(x, probability, dim, keepdim, interpolation=method)
            wanted = torch.quantile(x, probability, dim, keepdim, interpolation=method)
            torch.testing.assert_close(found, wanted, equal_nan=True)


def test_declines_out():
    with pytest.raises(Declined, match="out must be None"):
        catalogue()[NAME].body(ARGS[0], 0.5, out=ARGS[0].clone())


def test_sentinel():
    @rewrite(torch.quantile, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(input, q, *args, **options):
        return input.mean()

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: x[0].quantile(0.3), ARGS, "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter)
