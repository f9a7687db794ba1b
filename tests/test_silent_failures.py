"""What the stock exporters export wrong without a word: here each comes out right, or is refused with the place."""

import inspect
import math
from pathlib import Path

import onnxruntime
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from torch_onnx_compat import CompatError, export_compat
from torch_onnx_compat.errors import UnsupportedError, VerificationError

OTHER_SIZES = {"batch": (1, 2, 5, 9)}


class SizeBranch(nn.Module):
    def forward(self, x):
        return x * 2 if x.shape[0] > 1 else x + 1


class LargeSizeBranch(nn.Module):
    """Wrong only beyond the sizes that verification tries."""

    def forward(self, x):
        return x * 2 if x.shape[0] > 100 else x + 1


class ValueBranch(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x * 2
        return x - 1


class RareBranch(nn.Module):
    """Every random input takes the same branch; only the trace knows that there is another."""

    def forward(self, x):
        if x.abs().max() > 1e6:
            return x * 0
        return x + 1


class WhileLoop(nn.Module):
    def forward(self, x):
        while x.norm() < 10:
            x = x * 2
        return x


class Item(nn.Module):
    def forward(self, x):
        return x * x[0, 0].item()


class IntOfSize(nn.Module):
    def forward(self, x):
        return x.view(int(x.shape[0]), -1) * 1.0


class RangeOfSize(nn.Module):
    def forward(self, x):
        total = x[0]
        for i in range(1, x.shape[0]):
            total = total + x[i] * i
        return total


class LengthOf(nn.Module):
    def forward(self, x):
        return x / len(x)


REFUSED = [
    pytest.param(SizeBranch(), r"test_silent_failures.py:\d+: bool\(\) of a size", id="size branch"),
    pytest.param(LargeSizeBranch(), r"test_silent_failures.py:\d+: bool\(\) of a size", id="large size branch"),
    pytest.param(ValueBranch(), r"test_silent_failures.py:\d+: bool\(\) of the values", id="value branch"),
    pytest.param(RareBranch(), r"test_silent_failures.py:\d+: bool\(\) of the values", id="rare branch"),
    pytest.param(WhileLoop(), r"test_silent_failures.py:\d+: bool\(\) of the values", id="while"),
    pytest.param(Item(), r"test_silent_failures.py:\d+: item\(\) of the values", id="item"),
    pytest.param(IntOfSize(), r"test_silent_failures.py:\d+: int\(\) of a size", id="int of size"),
    pytest.param(RangeOfSize(), r"test_silent_failures.py:\d+: an index of a size", id="range of size"),
    pytest.param(LengthOf(), r"test_silent_failures.py:\d+: len\(\) of a size", id="len"),
]


@pytest.mark.parametrize(("model", "message"), REFUSED)
def test_torchscript_refuses_frozen_decisions(model, message):
    with pytest.raises(UnsupportedError, match=message):
        export_compat(model, torch.rand(3, 4), dynamic="batch", exporter="torchscript", control_flow=False)


REWRITTEN = [p for p in REFUSED if p.id not in ("while", "range of size")]


@pytest.mark.parametrize("model", [p.values[0] for p in REWRITTEN], ids=[p.id for p in REWRITTEN])
def test_torchscript_files_take_decisions_themselves(model):
    samples = [(torch.rand(n, 4) * sign,) for n in (1, 2, 7, 101) for sign in (1, -1)]
    export_compat(model, torch.rand(3, 4), dynamic="batch", exporter="torchscript", samples=samples)


@pytest.mark.parametrize("model", [p.values[0] for p in REFUSED], ids=[p.id for p in REFUSED])
def test_dynamo_is_right_or_refuses(model):
    """Whatever dynamo accepts is right at every size; the samples take the branches."""
    samples = [(torch.rand(n, 4) * sign,) for n in (1, 2, 7) for sign in (1, -1)]
    try:
        export_compat(model, torch.rand(3, 4), dynamic="batch", exporter="dynamo", samples=samples)
    except (UnsupportedError, VerificationError) as error:
        assert len(str(error)) < 1500, "an error is a sentence, not a dump"


def test_size_decisions_are_free_when_the_axis_is_fixed():
    result = export_compat(SizeBranch(), torch.rand(3, 4), exporter="torchscript")
    assert result.table


def test_a_decision_may_be_accepted():
    with pytest.raises(UnsupportedError) as refusal:
        export_compat(RareBranch(), torch.rand(3, 4), exporter="torchscript", control_flow=False)
    place = str(refusal.value).split("allow_baked=['")[1].split("']")[0]
    result = export_compat(RareBranch(), torch.rand(3, 4), exporter="torchscript", allow_baked=[place])
    assert result.exporter == "torchscript"
    assert not [note for note in result.notes if "no decision was met" in note]


@pytest.mark.parametrize("form", ["alone", "whole"])
def test_the_place_of_an_accepted_decision_may_be_written_otherwise(form, exporter):
    branch, lines = inspect.getsourcelines(RareBranch.forward)
    line = lines + next(number for number, text in enumerate(branch) if " if " in text)
    place = f"{Path(__file__).name if form == 'alone' else __file__}:{line}"
    options = {} if exporter == "dynamo" else {"control_flow": False}
    result = export_compat(RareBranch(), torch.rand(3, 4), allow_baked=[place], **options)
    assert not [note for note in result.notes if "no decision was met" in note]


def test_an_accepted_place_at_which_nothing_is_decided_is_told():
    options = {"exporter": "torchscript", "allow_baked": ["elsewhere.py:41"]}
    with pytest.raises(UnsupportedError, match=r"no decision was met at 'elsewhere\.py:41'"):
        export_compat(RareBranch(), torch.rand(3, 4), control_flow=False, **options)
    result = export_compat(RareBranch(), torch.rand(3, 4), **options)
    assert "no decision was met at 'elsewhere.py:41'" in result.notes[-1]


class Guards(nn.Module):
    def forward(self, x):
        assert x.abs().max() < 1e6, "out of range"
        if x.shape[0] == 0:
            raise ValueError("empty")
        torch._assert(x.shape[1] == 4, "four columns")
        return x + 1


def test_guards_are_no_decisions():
    """An assert or a raise loses its check in the file, but changes no result."""
    result = export_compat(Guards(), torch.rand(3, 4), dynamic="batch", exporter="torchscript")
    assert result.table


class GuardOfValues(nn.Module):
    def forward(self, x, var):
        if isinstance(var, float):
            x = x * var
        elif torch.any(var < 0):
            raise ValueError("negative")
        if torch.isnan(x).any():
            raise ValueError("NaN")
        return torch.nn.functional.gaussian_nll_loss(x, x * 0.5, var)


def test_a_guard_s_test_of_one_call_is_no_decision():
    """Python 3.11 says of the bool() of a whole test that it is where the `if` begins."""
    model = GuardOfValues()
    result = export_compat(
        model, (torch.rand(3, 4), torch.rand(3, 4) + 0.1), exporter="torchscript", control_flow=False
    )
    assert result.table


def test_a_number_that_is_given_back_is_not_taken():
    """conj() of a real tensor of shape () adds nothing to a trace."""
    result = export_compat(lambda x: torch.conj(x.mean()) + x, torch.rand(3), exporter="torchscript")
    assert result.table


class Operators(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


INTEGERS = torch.tensor([[-7, -6, -1, 0, 1, 7], [5, -5, 4, -4, 3, -3]])
OPERATORS = [
    pytest.param(lambda x: x // 3, (INTEGERS,), id="floor division of negatives"),
    pytest.param(lambda x: torch.cdist(x, x.flip(0), p=1.0), (torch.randn(6, 4),), id="cdist p=1"),
    pytest.param(
        lambda x, v: x.index_add(0, torch.tensor([0, 2, 0]), v), (torch.randn(4, 3), torch.randn(3, 3)), id="index_add"
    ),
    pytest.param(lambda x: x.unfold(1, 4, 2), (torch.randn(2, 9),), id="Tensor.unfold"),
    pytest.param(
        lambda x, v: x.scatter_reduce(0, torch.tensor([[0, 1, 0], [0, 1, 2]]), v, "mean"),
        (torch.randn(4, 3), torch.randn(2, 3)),
        id="scatter_reduce mean",
    ),
    pytest.param(
        lambda x, v: x.index_put((torch.tensor([0, 0, 1]),), v, accumulate=True),
        (torch.randn(4, 3), torch.randn(3, 3)),
        id="index_put accumulate",
    ),
    pytest.param(lambda x: F.adaptive_avg_pool2d(x, (3, 5)), (torch.randn(1, 2, 11, 13),), id="adaptive pooling"),
]


@pytest.mark.parametrize(("function", "args"), OPERATORS)
def test_operators_are_right_or_refused(function, args, exporter):
    try:
        export_compat(Operators(function), args, exporter=exporter)
    except (UnsupportedError, VerificationError) as error:
        assert len(str(error)) < 1500


def test_adaptive_pooling_at_other_sizes(exporter):
    model = nn.AdaptiveAvgPool2d((3, 5))
    dynamic = {"input": {0: "batch", 2: "height", 3: "width"}}
    result = export_compat(model.eval(), torch.randn(1, 2, 11, 13), dynamic=dynamic, exporter=exporter)
    assert {"height=13", "width=15"} <= {row.case for row in result.table}


def test_train_mode_exports_eval_mode_and_says_so(exporter):
    model = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4), nn.Dropout(0.5)).train()
    result = export_compat(model, torch.randn(2, 3, 4, 4), exporter=exporter)
    assert any("train mode" in note for note in result.notes)
    assert all(m.training for m in model.modules())


def test_an_exported_program_has_no_mode_to_set():
    x = torch.randn(2, 3)
    module = torch.export.export(nn.Linear(3, 2).eval(), (x,)).module()
    assert not export_compat(module, x, exporter="torchscript").notes


def test_attention_on_padded_rows(exporter):
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    mask = torch.tensor([[False, False, False], [False, False, True], [False, True, True]])
    try:
        export_compat(layer, (torch.randn(3, 3, 8),), kwargs={"src_key_padding_mask": mask}, exporter=exporter)
    except UnsupportedError as error:
        assert "is_causal" in str(error)


class CachedGrid(nn.Module):
    """As ultralytics' heads do: anchors of the last shape, kept between calls."""

    shape = None

    def forward(self, x):
        if self.shape != x.shape[-1]:
            self.shape = x.shape[-1]
            self.grid = torch.arange(x.shape[-1], dtype=x.dtype)
        return x * self.grid


def test_caches_of_an_earlier_run(exporter):
    model = CachedGrid().eval()
    model(torch.rand(2, 6))
    dynamic = {"x": {1: "width"}}
    try:
        export_compat(model, torch.rand(2, 6), dynamic=dynamic, exporter=exporter)
    except (UnsupportedError, VerificationError) as error:
        assert len(str(error)) < 1500
    assert model.shape == 6


def test_the_requested_opset_is_the_file_s(exporter):
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.GELU(), nn.Flatten(), nn.Linear(4 * 36, 5)).eval()
    for opset in (11, 13, 17, 18, 20, 21):
        result = export_compat(model, torch.randn(2, 3, 8, 8), opset_version=opset, exporter=exporter, dynamic="batch")
        assert result.opset == opset
        assert next(o.version for o in result.model_proto.opset_import if o.domain == "") == opset


class ErrorCaught(nn.Module):
    def check(self, x):
        if x.mean() > 0:
            raise ValueError("positive")
        return x * 2

    def forward(self, x):
        try:
            return self.check(x)
        except ValueError:
            return x - 1


def test_nothing_is_exported_silently_wrong_by_auto():
    with pytest.raises(CompatError) as error:
        export_compat(ErrorCaught(), torch.rand(3, 4))
    assert "torchscript" in str(error.value)
    assert "dynamo" in str(error.value)


class CachedIndices(nn.Module):
    """As timm's ConViT: a table is made at the first call and compared with the size at the next."""

    table = None

    def forward(self, x):
        if self.table is None or self.table.shape[0] != x.shape[1]:
            self.table = torch.arange(x.shape[1], dtype=x.dtype)
        return x + self.table


def test_a_cache_of_fixed_size_is_no_decision():
    """Each trace has a twin of its own, so what the first one left behind is not there in the second."""
    result = export_compat(CachedIndices(), torch.rand(2, 6), dynamic="batch", exporter="torchscript")
    assert result.table


def test_standard_streams_stay_clean(capfd):
    """torch's C++ code writes a graph to one and a hint to the other; what the model prints passes."""

    class Talks(nn.Module):
        def forward(self, x):
            print("from the model")
            size = x.shape[0]
            size += 1
            return x * size

    try:
        export_compat(Talks(), torch.rand(2, 6), dynamic="batch", exporter="torchscript")
    except CompatError as error:
        assert len(str(error)) < 1500
    out, err = capfd.readouterr()
    assert set(out.splitlines()) <= {"from the model"}
    assert err == ""


class Rounded(nn.Module):
    """The run without numbers asks nothing here: math.floor and round leave a symbol a symbol."""

    def forward(self, x):
        return x + torch.as_tensor(math.floor(x.shape[0] + 1)) * round(x.shape[0] / 4)


@pytest.mark.dynamo_from("2.9", "torch.export fixes a size of which a tensor is made")
@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
def test_a_rounded_size_is_no_constant_without_a_proof(exporter, tmp_path):
    path = tmp_path / "model.onnx"
    export_compat(Rounded(), torch.randn(4, 3), path, dynamic="batch", exporter=exporter, verify=False)
    x = torch.randn(13, 3)
    (found,) = onnxruntime.InferenceSession(path).run(None, {"x": x.numpy()})
    torch.testing.assert_close(torch.from_numpy(found), Rounded()(x))
