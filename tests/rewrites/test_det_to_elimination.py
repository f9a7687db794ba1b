import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS, Declined
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "det_to_elimination"
ARGS = (torch.randn(3, 4, 4, dtype=torch.float64),)
DYNAMIC = {"x": {0: "batch"}}


def many(x):
    return (
        torch.det(x),
        torch.linalg.det(x[:, :2, :2]),
        x[:, :3, :3].det(),
    )


def test_matches(exporter):
    result = assert_entry(NAME, many, ARGS, exporter, dynamic=DYNAMIC)
    assert not {"If", "Loop", "NonZero"} & set(result.nodes)


@pytest.mark.parametrize("size", [1, 2, 5, 8])
def test_equals_eager(size):
    x = torch.randint(-1, 2, (100, size, size)).double()
    torch.testing.assert_close(catalogue()[NAME].body(x), torch.det(x))


def test_declines():
    with pytest.raises(Declined, match="must have 1 to 8 rows, got 9"):
        catalogue()[NAME].body(torch.ones(9, 9, dtype=torch.float64))
    with pytest.raises(Declined, match="out must be None"):
        catalogue()[NAME].body(ARGS[0], out=ARGS[0])


def test_near_misses_are_left_alone():
    result = assert_same_outputs(lambda x: torch.det(x.float()), ARGS, "torchscript")
    assert NAME not in {note.entry for note in (*result.applied, *result.declined)}


def test_sentinel(exporter):
    @rewrite(torch.det, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*args, **options):
        return args[0].sum((1, 2))

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: torch.det(x), ARGS, exporter, rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter, dynamic=DYNAMIC)
