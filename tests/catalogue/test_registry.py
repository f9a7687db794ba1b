"""The decorators: what they refuse, what they record, and who wins."""

import pytest
import torch
from torch import nn

from torch_onnx_compat import CompatError, Exactness, rewrite, symbolic
from torch_onnx_compat.catalogue.catalogue import catalogue
from torch_onnx_compat.catalogue.entry import Declined, Operator, Rewrite, Symbolic
from torch_onnx_compat.catalogue.registry import Registry, entry_of
from torch_onnx_compat.errors import ClashError
from torch_onnx_compat.plan import make_plan
from torch_onnx_compat.targets import Row, Target

ORT = Target("onnxruntime")


def body(op, x):
    """Does nothing, well."""
    return x


def test_what_a_symbolic_records():
    registry = Registry()
    decorated = symbolic("aten::relu", name="one", needed_on=("dynamo",), opset=(13, 17), registry=registry)(body)
    assert decorated is body
    entry = registry["one"]
    assert isinstance(entry, Symbolic)
    assert (entry.op, entry.opset, entry.summary) == ("aten::relu", (13, 17), "Does nothing, well.")
    assert entry.owner == __name__
    assert entry_of(body) is entry


@pytest.mark.parametrize(
    ("match", "kind"),
    [
        (nn.ReLU, "module"),
        ("module:acme.Focus", "module"),
        (torch.roll, "function"),
        ((torch.roll, torch.flip), "function"),
        ("torchvision.ops.boxes.batched_nms", "attribute"),
        ("*.window_reverse", "attribute"),
    ],
)
def test_kinds_of_rewrite(match, kind):
    registry = Registry()
    rewrite(match, name="one", registry=registry)(lambda *args: None)
    assert isinstance(registry["one"], Rewrite)
    assert registry["one"].kind == kind


def test_clashes_name_both_owners():
    registry = Registry()
    symbolic("aten::relu", name="one", opset=(11, 17), registry=registry)(body)
    with pytest.raises(ClashError, match=r"'aten::relu' for opset 15..17 is registered by both .*'one'.*'two'"):
        symbolic("aten::relu", name="two", opset=(15, 20), registry=registry)(body)
    with pytest.raises(ClashError, match="entry 'one' is registered by both"):
        symbolic("aten::tanh", name="one", registry=registry)(body)


def test_no_clash_where_one_is_more_specific():
    registry = Registry()
    symbolic("aten::relu", name="any", registry=registry)(body)
    symbolic("aten::relu", name="late", opset=(18, 20), always=True, registry=registry)(body)
    symbolic("aten::relu", name="tensorrt", targets=("tensorrt",), always=True, registry=registry)(body)
    plan = make_plan(registry, exporter="dynamo", opset=18, target=ORT, include=["any"])
    assert [e.name for e in plan.symbolics()] == ["late"]
    assert plan.skipped["any"] == "late is more specific"
    plan = make_plan(registry, exporter="dynamo", opset=18, target=Target("tensorrt"), include=["any"])
    assert [e.name for e in plan.symbolics()] == ["tensorrt"]


def test_entries_for_one_call_win():
    registry = Registry()
    symbolic("aten::relu", name="one", registry=registry)(body)

    @symbolic("aten::relu", name="mine", registry=None)
    def mine(op, x):
        return x

    assert [e.name for e in registry.with_entries([mine])] == ["mine"]
    assert [e.name for e in registry] == ["one"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: symbolic("relu"), "the operator needs its namespace, e.g. 'aten::relu'"),
        (lambda: rewrite("relu"), "wanted an nn.Module class"),
        (lambda: rewrite(int), "wanted an nn.Module class"),
        (lambda: rewrite((nn.ReLU, torch.roll)), "must be of one kind"),
        (
            lambda: symbolic("aten::relu", needed_on="dynamo"),
            "needed_on='dynamo' is a str; wanted a list",
        ),
        (lambda: symbolic("aten::relu", needed_on=("dynmo",)), "unknown exporter 'dynmo'; did you mean 'dynamo'"),
        (
            lambda: symbolic("aten::erf", exactness=Exactness.APPROXIMATE, registry=None)(body),
            "'body' is APPROXIMATE and must state its largest relative error",
        ),
    ],
)
def test_declarations_that_are_refused(make, message):
    with pytest.raises(CompatError, match=message):
        make()


def test_approximate_entries_need_permission():
    registry = Registry()
    symbolic("aten::lgamma", name="a", always=True, exactness=Exactness.APPROXIMATE, error=1e-5, registry=registry)(
        body
    )
    common = {"exporter": "dynamo", "opset": 18, "target": ORT}
    assert "allow_approximate=True" in make_plan(registry, **common).skipped["a"]
    assert "a" in make_plan(registry, **common, allow_approximate=True).armed


def test_a_needed_entry_that_lacks_permission_says_so_where_it_would_apply():
    registry = Registry()
    common = {"exactness": Exactness.APPROXIMATE, "error": 1e-5, "registry": registry}
    rewrite(torch.lgamma, name="needed", needed_on=("dynamo",), **common)(body)
    rewrite(torch.digamma, name="elsewhere", needed_on=("torchscript",), **common)(body)
    plan = make_plan(registry, exporter="dynamo", opset=18, target=ORT)
    assert not plan.armed
    (entry,) = plan.rewrites()
    with pytest.raises(Declined, match=r"error up to 1e-05\); allow_approximate=True admits it"):
        entry.body(1, 2)


def test_needs_follow_from_the_target():
    registry = Registry()
    cubic = Operator("Resize", mode="cubic")
    rewrite(nn.Upsample, name="a", avoids=(cubic, "GridSample"), registry=registry)(body)
    picky = Target("picky", rows=(Row("Resize", "wrong", {"mode": "cubic"}),))
    linear = Target("linear", rows=(Row("Resize", "wrong", {"mode": "linear"}),))
    common = {"exporter": "dynamo", "opset": 18}
    assert make_plan(registry, **common, target=picky).armed == {"a": "Resize(mode='cubic') wrong on picky"}
    assert not make_plan(registry, **common, target=linear).armed
    early = make_plan(registry, exporter="dynamo", opset=13, target=ORT)
    assert early.armed == {"a": "GridSample needs opset 16 or later"}


def test_every_built_in_entry_has_a_source_and_a_need():
    for entry in catalogue():
        assert entry.source, entry.name
        assert entry.summary, entry.name
        assert str(entry.need)


def test_an_entry_declines_arguments_that_it_does_not_take():
    with pytest.raises(Declined, match="does not take so many arguments"):
        catalogue()["pow_to_sqrt"].run(str, torch.ones(2), 2, 7)
