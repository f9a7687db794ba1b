import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs

NAME = "setitem_to_expanded"
EXAMPLE = (torch.randn(3, 6), torch.randn(3, 6))
SAMPLES = [(torch.randn(5, 6), torch.randn(5, 6))]
DYNAMIC = {"x": {0: "batch"}, "v": {0: "batch"}}


def written(x, key, value):
    y = x.clone()
    y[key] = value
    return y


def many(x, v):
    every = slice(None)
    rows = written(x, torch.tensor([0, 2]), v[:1]), written(x, 1, v[0]), written(x, slice(1, None), v[0])
    slices = written(x, (every, slice(1, 3)), v[0, :2]), written(x, (every, slice(-2, None)), v[:, :1])
    wide = torch.stack((x, x), 1)
    return (
        *rows,
        *slices,
        written(wide, (every, slice(None), slice(None, None, 2)), v[:, None, :1]),
        written(x, ..., v[0]),
    )


def test_matches(exporter):
    assert_entry(NAME, many, EXAMPLE, exporter, dynamic=DYNAMIC, samples=SAMPLES)


def test_applied():
    result = assert_same_outputs(
        lambda x, v: written(x, (slice(None), slice(1, 3)), v[0, :2]), EXAMPLE, "torchscript", uses=(NAME,)
    )
    assert result.applied


def test_leaves_near_misses_alone():
    result = assert_same_outputs(lambda x, v: written(x, (slice(None), slice(1, 3)), v[:, :2]), EXAMPLE, "torchscript")
    assert NAME not in {note.entry for note in (*result.applied, *result.declined)}


def test_numbers_and_masks_are_left_alone():
    def model(x, v):
        return written(written(x, x > 0, 2.0), (slice(None), 0), 1.0)

    result = assert_same_outputs(model, EXAMPLE, "torchscript")
    assert NAME not in {note.entry for note in result.applied}


def test_sentinel():
    @rewrite(torch.Tensor.__setitem__, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(self, key, value):
        self[key] = 0.0

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(
            lambda x, v: written(x, (slice(None), slice(1, 3)), v[0, :2]), EXAMPLE, "torchscript", rewrites=[broken]
        )


def test_still_needed_for_torchscript():
    with pytest.raises(CompatError, match="does not compute what the model computes"):
        assert_same_outputs(
            lambda x, v: written(x, (slice(None), slice(1, 3)), v[0, :2]),
            EXAMPLE,
            "torchscript",
            dynamic=DYNAMIC,
            samples=SAMPLES,
            exclude=[NAME],
        )
