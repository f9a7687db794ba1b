"""Scripted, traced and quantised modules, with attributes, optional values and loops."""

from __future__ import annotations

from typing import Any, Optional

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from never_worse_models.table import CASES, B, Case, X, Y, case, rand


class Statistics(nn.Module):
    """A scripted module that keeps statistics."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.InstanceNorm1d(5, track_running_stats=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x)


class AttributeSet(nn.Module):
    """A scripted module that sets an attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(3, 10, 2)
        self.b = False

    def forward(self, box: Tensor, weight: Tensor) -> Tensor:
        self.b = self.training
        self.conv.weight = nn.Parameter(weight)
        return box + self.conv.weight.sum()


class OptionalInside(nn.Module):
    """Returns an Optional."""

    def forward(self, x: Tensor) -> Optional[Tensor]:  # noqa: UP045 - the script compiler of older torch reads this form
        y: Optional[Tensor] = None  # noqa: UP045
        if x.size(0) > 1:
            y = x
        return y


class OptionalArgument(nn.Module):
    """Takes an Optional."""

    def forward(self, x: Tensor, y: Optional[Tensor] = None) -> Tensor:  # noqa: UP045
        if y is None:
            return x * 2
        return x + y


class TwoResults(nn.Module):
    """Returns a tensor and a number."""

    def forward(self, x: Tensor) -> tuple[Tensor, int]:
        return x + 1, x.size(0)


class NoneResult(nn.Module):
    """Returns a tensor and None."""

    def forward(self, x: Tensor) -> tuple[Tensor, Optional[Tensor]]:  # noqa: UP045
        return x + 1, None


class NumberArgument(nn.Module):
    """Takes a number."""

    def forward(self, x: Tensor, k: int) -> Tensor:
        return x * k


class ListResult(nn.Module):
    """Returns a list."""

    def forward(self, x: Tensor) -> list[Tensor]:
        return [x + 1, x * 2]


class DictResult(nn.Module):
    """Returns a dict."""

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        return {"a": x + 1, "b": x * 2}


class ScriptedLoop(nn.Module):
    """A loop over the rows of a tensor."""

    def forward(self, x: Tensor) -> Tensor:
        y = torch.zeros(4)
        for i in range(x.size(0)):
            y = y + x[i] * i
        return y


class ScriptedBranch(nn.Module):
    """A branch on values."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        if bool(x.sum() > 0):
            return self.fc(x)
        return x - 1


class PaddedSequences(nn.Module):
    """Rows of other lengths as one tensor."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return nn.utils.rnn.pad_sequence([x, y], batch_first=True)


class Resized(nn.Module):
    """F.interpolate with attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.size, self.align = 6, False

    def forward(self, x: Tensor) -> Tensor:
        return F.interpolate(x, size=self.size, mode="bilinear", align_corners=self.align)


class Holder(nn.Module):
    """Calls a scripted module inside a plain one."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, *args: Any) -> Any:
        result = self.inner(*args)
        return result[0] * 2 if isinstance(result, (tuple, list)) else result * 2


_S: Any = torch.jit.script
_POSITIVE = [(X.abs(),), (-X.abs(),)]
_FLOATS = rand(2, 5, 7)
_MODELS: dict[str, tuple[nn.Module, tuple[Any, ...], Any, Any]] = {
    "statistics": (Statistics(), (_FLOATS,), B, [(rand(4, 5, 7),)]),
    "optional": (OptionalInside(), (X,), B, [(Y,)]),
    "optional_argument": (OptionalArgument(), (X,), B, [(Y,)]),
    "optional_argument_given": (OptionalArgument(), (X, X), {}, [(X * 2, X)]),
    "number_result": (TwoResults(), (X,), B, [(Y,)]),
    "none_result": (NoneResult(), (X,), B, [(Y,)]),
    "number_argument": (NumberArgument(), (X, 3), B, [(Y, 3)]),
    "list_result": (ListResult(), (X,), B, [(Y,)]),
    "dict_result": (DictResult(), (X,), B, [(Y,)]),
    "loop": (ScriptedLoop(), (X,), B, [(Y,)]),
    "branch": (ScriptedBranch(), (X,), B, _POSITIVE),
    "resized": (Resized(), (rand(1, 2, 4, 4),), B, [(rand(3, 2, 4, 4),)]),
    "linear": (nn.Linear(4, 3), (X,), B, [(Y,)]),
    "conv": (nn.Conv2d(3, 4, 3), (rand(2, 3, 8, 8),), B, [(rand(4, 3, 8, 8),)]),
}


def _scripted(name: str) -> Case:
    model, args, axes, others = _MODELS[name]
    return Case(_S(model.eval()), args, axes, others)


def _scripted_inside(name: str) -> Case:
    model, args, axes, others = _MODELS[name]
    return Case(Holder(_S(model.eval())).eval(), args, axes, others)


for _name in _MODELS:
    CASES[f"scripted_{_name}"] = lambda name=_name: _scripted(name)  # type: ignore[misc]
for _name in ("loop", "branch", "number_result", "none_result", "list_result", "number_argument", "linear"):
    CASES[f"scripted_inside_{_name}"] = lambda name=_name: _scripted_inside(name)  # type: ignore[misc]


@case
def traced_module() -> Case:
    """torch.jit.trace of a plain model."""
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU()).eval()
    return Case(torch.jit.trace(model, X), (X,), B, [(Y,)])


@case
def scripted_batch_norm_training() -> Case:
    """A scripted BatchNorm in training mode."""
    model = _S(nn.BatchNorm2d(3).train())
    return Case(model, (rand(4, 3, 5, 5),), {}, [], {"training": torch.onnx.TrainingMode.TRAINING})


def _quantized() -> nn.Module:
    torch.backends.quantized.engine = "fbgemm"
    torch.manual_seed(0)
    model = nn.Sequential(torch.ao.quantization.QuantStub(), nn.Linear(4, 3), torch.ao.quantization.DeQuantStub())
    model.eval()
    model.qconfig = torch.ao.quantization.get_default_qconfig("fbgemm")  # type: ignore[assignment]
    prepared = torch.ao.quantization.prepare(model)  # type: ignore[no-untyped-call]
    prepared(X)
    return torch.ao.quantization.convert(prepared)  # type: ignore[no-untyped-call, no-any-return]


@case
def quantized() -> Case:
    """A quantized linear layer."""
    return Case(_quantized(), (X,), {}, [(X * 0.5,)])


@case
def quantized_scripted() -> Case:
    """The same, scripted."""
    return Case(_S(_quantized()), (X,), {}, [(X * 0.5,)])


@case
def quantized_traced() -> Case:
    """The same, traced."""
    return Case(torch.jit.trace(_quantized(), X), (X,), {}, [(X * 0.5,)])
