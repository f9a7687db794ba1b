import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "isin_to_equal"
EXAMPLE = (torch.randint(-4, 5, (3, 4)),)
SAMPLES = [(torch.randint(-4, 5, (6, 4)),)]
DYNAMIC = {"x": {0: "batch"}}


def many(x):
    some, floats = torch.tensor([1, -3, 4]), x.float() / 2
    numbers = (torch.isin(x, 3), torch.isin(3, x), torch.isin(x, 3, invert=True))
    return (
        torch.isin(x, some),
        torch.isin(x, x[0], invert=True),
        torch.isin(floats, x),
        torch.isin(x, some[:1]),
        *numbers,
    )


def test_matches(exporter):
    assert_same_outputs(many, EXAMPLE, exporter, dynamic=DYNAMIC, samples=SAMPLES, uses=(NAME,))


def test_applied(exporter):
    result = assert_same_outputs(lambda x: torch.isin(x, torch.tensor([1, -3])), EXAMPLE, exporter, uses=(NAME,))
    assert {"Equal"} <= set(result.nodes)


def test_leaves_near_misses_alone(exporter):
    result = assert_same_outputs(lambda x: x == 3, EXAMPLE, exporter)
    assert NAME not in {note.entry for note in (*result.applied, *result.declined)}


def test_equals_eager():
    body = catalogue()[NAME].body
    for x, t in [
        (torch.tensor([1.0, float("nan"), 2.0]), torch.tensor([float("nan"), 2.0])),
        (torch.ones(0), torch.ones(2)),
        (torch.ones(2, 2), torch.ones(0)),
        (2, torch.arange(4)),
    ]:
        assert torch.equal(body(x, t), torch.isin(x, t))


def test_sentinel(exporter):
    @rewrite(torch.isin, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(elements, test_elements, *, assume_unique=False, invert=False):
        return elements > test_elements[0]

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: torch.isin(x, torch.tensor([1, -3])), EXAMPLE, exporter, rewrites=[broken])


def test_still_needed_for_torchscript():
    with pytest.raises(CompatError, match="is not supported"):
        assert_same_outputs(
            lambda x: torch.isin(x, torch.tensor([1, -3])),
            EXAMPLE,
            "torchscript",
            dynamic=DYNAMIC,
            samples=SAMPLES,
            exclude=[NAME],
        )


def test_still_needed_for_dynamo():
    with pytest.raises(CompatError, match="No ONNX function"):
        assert_same_outputs(
            lambda x: torch.isin(x, torch.tensor([1, -3])),
            EXAMPLE,
            "dynamo",
            dynamic=DYNAMIC,
            samples=SAMPLES,
            exclude=[NAME],
        )
