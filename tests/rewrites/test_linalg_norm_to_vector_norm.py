import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS, Declined
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "linalg_norm_to_vector_norm"
ARGS = (torch.randn(2, 3, 4),)
DYNAMIC = {"x": {0: "batch"}}


def many(x):
    return (
        torch.linalg.norm(x),
        torch.linalg.norm(x[0]),
        torch.linalg.norm(x, dim=-1),
        torch.linalg.norm(x, 1, dim=1, keepdim=True),
        torch.linalg.norm(x, "fro", dim=(1, 2)),
        torch.linalg.norm(x, 1, dim=(1, 2)),
        torch.linalg.norm(x, -torch.inf, dim=(2, 1), keepdim=True),
        torch.linalg.norm(x, torch.inf, dim=-1),
        torch.linalg.norm(x, 0, dim=[-1]),
        torch.linalg.norm(x[0], torch.inf),
        torch.linalg.norm(x[0, 0], 3),
        torch.linalg.norm(x, dim=(0, 1), dtype=torch.float64),
    )


def test_matches(exporter):
    result = assert_entry(NAME, many, ARGS, exporter, dynamic=DYNAMIC)
    assert not {"If", "Loop", "NonZero"} & set(result.nodes)


def test_leaves_norms_of_singular_values_alone():
    for order in ("nuc", 2, -2):
        assert catalogue()[NAME].body(ARGS[0], order, (1, 2)) is NotImplemented


def test_declines_out():
    with pytest.raises(Declined, match="out must be None"):
        catalogue()[NAME].body(ARGS[0], out=ARGS[0])


def test_near_misses_are_left_alone():
    result = assert_same_outputs(lambda x: torch.linalg.vector_norm(x, 2, 1), ARGS, "torchscript")
    assert NAME not in {note.entry for note in (*result.applied, *result.declined)}


def test_sentinel(exporter):
    @rewrite(torch.linalg.norm, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*args, **options):
        return args[0].sum()

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: torch.linalg.norm(x), ARGS, exporter, rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter, dynamic=DYNAMIC)
