"""Profiles: by name, by version, the caller's own, and what measuring writes."""

import re

import pytest

from torch_onnx_compat.catalogue.entry import Operator
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.targets import Row, Target, known_targets, load_target
from torch_onnx_compat.targets.profile import to_toml

OWN = """
name = "board"
version = "2.1"
opset = 13
opsets = [11, 17]
ir_version = 8
dynamic = "no"
works = ["Add"]

[[operators]]
op = "Resize"
verdict = "wrong"
when = { mode = ["cubic", "linear"], rank = 5 }
source = "the board's manual, page 7"

[[operators]]
op = "Pad"
verdict = "refused"
when = { rank = { not = [3, 4] } }
source = "measured"
"""


@pytest.mark.parametrize("name", known_targets())
def test_shipped_profiles(name):
    target = load_target(name)
    assert target.name == name.partition("@")[0]
    assert target.opsets[0] <= target.opset <= target.opsets[1]
    assert target.version
    assert all(row.source for row in target.rows)


def test_own_file(tmp_path):
    path = tmp_path / "board.toml"
    path.write_text(OWN)
    target = load_target(path)
    assert (target.name, target.dynamic, target.ir_version, target.measured) == ("board", "no", 8, False)
    row = Row("Resize", "wrong", {"mode": ["cubic", "linear"], "rank": 5}, source="the board's manual, page 7")
    pad = Row("Pad", "refused", {"rank": {"not": [3, 4]}}, source="measured")
    assert target.rows == (row, pad)
    assert pad.condition == "rank!=3|4"
    assert [target.verdict("Pad", 17, {"rank": rank}) for rank in (3, 5)] == ["works", "refused"]
    assert row.condition == "mode=cubic|linear, rank=5"


def test_what_is_written_is_what_is_read(tmp_path):
    path = tmp_path / "board.toml"
    path.write_text(OWN)
    first = load_target(path)
    path.write_text(to_toml(first))
    assert load_target(path) == first
    assert to_toml(load_target(path)) == path.read_text()


def test_version():
    version = load_target("onnxruntime").version
    major = version.partition(".")[0]
    assert load_target(f"onnxruntime@{version}") == load_target(f"onnxruntime@{major}") == load_target("onnxruntime")


def test_version_that_was_not_measured():
    with pytest.raises(CompatError, match=r"target 'onnxruntime@0.1': version 0.1 was not measured; take one of: \d"):
        load_target("onnxruntime@0.1")


def test_unknown_target():
    with pytest.raises(CompatError, match=r"unknown target 'onnxruntim'; did you mean 'onnxruntime'\?"):
        load_target("onnxruntim")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "board"', "", "'name' is missing or of the wrong kind"),
        ('"wrong"', '"worng"', "unknown verdict 'worng'; did you mean 'wrong'?"),
        ('"no"', '"never"', "unknown dynamic 'never'"),
        ("opset = 13", "opset = ", "is no TOML"),
        ("not = [3, 4]", "but = [3, 4]", "'when' of Pad is missing or of the wrong kind"),
    ],
)
def test_bad_file(tmp_path, old, new, message):
    path = tmp_path / "board.toml"
    path.write_text(OWN.replace(old, new, 1))
    with pytest.raises(CompatError, match=re.escape(message)):
        load_target(path)


TARGET = Target(
    "board",
    rows=(
        Row("Resize", "wrong", {"mode": "cubic", "rank": 5}),
        Row("Mod", "refused"),
        Row("Pad", "works", {"rank": 4}),
    ),
    works=frozenset({"Add"}),
)


@pytest.mark.parametrize(
    ("op_type", "facts", "verdict"),
    [
        ("Resize", {"mode": "cubic", "rank": 5}, "wrong"),
        ("Resize", {"mode": "cubic"}, "wrong"),
        ("Resize", {"mode": "cubic", "rank": 4}, "works"),
        ("Mod", {}, "refused"),
        ("Add", {}, "works"),
        ("Sub", {}, "unknown"),
        ("Nonsense", {}, "refused"),
    ],
)
def test_verdict(op_type, facts, verdict):
    assert TARGET.verdict(op_type, 17, facts) == verdict


def test_entries_are_planned_only_for_what_is_certain():
    assert TARGET.avoids(Operator("Mod"), 17) == "refused on board"
    assert TARGET.avoids(Operator("Resize", mode="cubic"), 17) is None
    assert TARGET.avoids(Operator("Resize", mode="cubic", rank=5), 17) == "wrong on board"
    assert TARGET.avoids(Operator("Gelu"), 17) == "needs opset 20 or later"
