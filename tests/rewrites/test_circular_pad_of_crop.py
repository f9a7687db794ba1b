import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "circular_pad_of_crop"
ARGS = (torch.randn(2, 4, 5),)
DYNAMIC = {"x": {0: "batch"}}


def many(x):
    return (
        torch.nn.functional.pad(x, (-1, 2), "circular"),
        torch.nn.functional.pad(x[:, None], (2, -1, -1, -1), "circular"),
    )


def test_matches(exporter):
    result = assert_entry(NAME, many, ARGS, exporter, dynamic=DYNAMIC)
    assert not {"If", "Loop", "NonZero"} & set(result.nodes)


def test_near_misses_are_left_alone():
    result = assert_same_outputs(lambda x: torch.nn.functional.pad(x, (1, 2), "circular"), ARGS, "torchscript")
    assert NAME not in {note.entry for note in (*result.applied, *result.declined)}


def test_sentinel(exporter):
    @rewrite(torch.nn.functional.pad, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*args, **options):
        return args[0] * 1

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(
            lambda x: torch.nn.functional.pad(x, (-1, 2), "circular"), ARGS, exporter, rewrites=[broken]
        )


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter, dynamic=DYNAMIC)
