"""Programs written by hand: no file may be wrong wherever eager torch runs. scripts/judge_written.py runs them all."""

from __future__ import annotations

import sys

import pytest
import torch
from torch import nn

from fuzz.written import all_programs
from fuzz.written.judge import judge
from torch_onnx_compat import export_compat
from torch_onnx_compat.control_flow.find.users import NumberUsers
from torch_onnx_compat.targets.target import Target

STEP = 16
BAD = ("WRONG", "fails-at-legal-size", "other exception")

PROGRAMS = all_programs()
STAND_INS = [
    f"stand_ins.Through{by}"
    for by in ("Attribute", "Result", "Closure", "Generator", "Map", "Decorator", "CachedProperty", "Vmap")
]

NUMBERS = [
    f"numbers_in_tensors.{name}"
    for name in ("FilledInPlace", "FractionsInAList", "ASingleFraction", "ScaledPositions", "TensorOfAValue")
]

REPLACED = ["replaced_calls.PooledInRareBranch", "replaced_calls.PooledAfterNested", "replaced_calls.ResizedInBranch"]
COMPLEX = [f"complex_numbers.{name}" for name in ("SecondName", "Iterated", "LeakySum", "TransformedBySize")]

IDIOMS = [
    ("codebases.ImagesJoined", "torchscript"),
    ("codebases.Prompts", "torchscript"),
    ("codebases.EncoderWithResult", "torchscript"),
    ("codebases.Keypoints", "dynamo"),
    ("codebases.RelativeTable", "dynamo"),
    ("old_code.HueByMasks", "torchscript"),
    ("old_code.YoloLayer", "torchscript"),
    ("old_code.YoloLayer", "dynamo"),
    ("old_code.ScaledBoxes", "dynamo"),
    ("old_code.HiddenByVariable", "torchscript"),
    ("selections.SpreadOfMasked", "torchscript"),
    ("selections.TruthsOfMasked", "dynamo"),
    ("selections.MeanOfTheRest", "dynamo"),
]

LONG = {
    ("means.NestedLoops", "dynamo"),
    ("halving.PooledToOne", "dynamo"),
    ("choices.OldestOpsetImages", "dynamo"),
    ("sized_operators.ResizeByFactor", "torchscript"),
}
"""More than 20 seconds each; the other exporter stays in the fast suite."""

ROWS = [
    pytest.param(name, exporter, marks=[pytest.mark.slow] if (name, exporter) in LONG else [])
    for name in [*list(PROGRAMS)[::STEP], *STAND_INS, *NUMBERS, *COMPLEX]
    for exporter in ("torchscript", "dynamo")
]


@pytest.mark.one_exporter
@pytest.mark.parametrize(("name", "exporter"), ROWS)
def test_no_file_is_wrong(name, exporter):
    found = judge(PROGRAMS[name], exporter, stock=False)
    assert found.verdict not in BAD, found.detail


@pytest.mark.one_exporter
@pytest.mark.parametrize(("name", "exporter"), IDIOMS)
def test_idioms_of_code_bases_are_right(name, exporter):
    found = judge(PROGRAMS[name], exporter, stock=False)
    assert found.verdict == "right", found.detail


@pytest.mark.parametrize("name", REPLACED)
def test_functions_are_replaced_in_branches(name, exporter):
    """Without a proof, too: nothing else would tell that the sizes of another call were taken."""
    found = judge(PROGRAMS[name], exporter, proof=False)
    assert found.verdict == "right", found.detail


def test_a_helper_that_only_asks_what_a_number_is_would_be_missed(monkeypatch):
    monkeypatch.setattr(NumberUsers, "begin", lambda self: None)
    assert judge(PROGRAMS["stand_ins.ThroughAttribute"], "torchscript", stock=False).verdict == "WRONG"


@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
def test_fractions_of_float32_in_a_tensor_are_refused(exporter, monkeypatch):
    monkeypatch.setattr(Target, "computes_double", False)
    found = judge(PROGRAMS["numbers_in_tensors.FilledInPlace"], exporter, stock=False)
    assert found.verdict == "refused"
    assert "in floating point, and the file rounds otherwise" in found.detail


def test_the_callers_profile_function_comes_back():
    def profile(frame, event, arg):
        pass

    written = PROGRAMS["stand_ins.ThroughFunction"]
    sys.setprofile(profile)
    try:
        export_compat(written.make(), written.draw(), exporter="torchscript")
        assert sys.getprofile() is profile
    finally:
        sys.setprofile(None)


def test_a_failure_while_numbers_are_watched_leaves_no_profile_function():
    class Fails(nn.Module):
        def forward(self, x):
            if int(x.max()) > 3:
                x = x * 2
            raise RuntimeError("no")

    def interrupt(users):
        with users.watch():
            users.begin()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupt(NumberUsers())
    assert sys.getprofile() is None
    with pytest.raises(Exception, match="no"):
        export_compat(Fails(), (torch.rand(3, 6),), exporter="torchscript")
    assert sys.getprofile() is None
