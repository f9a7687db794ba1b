"""What the keywords of export_compat mean, and which of torch.onnx.export's are taken at their defaults only."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import torch

from torch_onnx_compat.entry import EXPORTERS, MIN_OPSET, Exporter
from torch_onnx_compat.errors import CompatError, unknown_name
from torch_onnx_compat.targets import Target

IGNORED_AT_DEFAULTS: dict[str, tuple[Any, ...]] = {
    "report": (False,),
    "profile": (False,),
    "dump_exported_program": (False,),
    "artifacts_dir": (".",),
    "operator_export_type": (None, torch.onnx.OperatorExportTypes.ONNX),
    "export_modules_as_functions": (False,),
    "fallback": (False,),
}


def check_keywords(given: Mapping[str, Any], known: Iterable[str]) -> None:
    """Refuses what torch.onnx.export takes but this cannot honour, rather than ignoring it."""
    for name, value in given.items():
        if name not in IGNORED_AT_DEFAULTS:
            raise unknown_name("keyword", name, (*known, *IGNORED_AT_DEFAULTS))
        if value not in IGNORED_AT_DEFAULTS[name] and name != "artifacts_dir":
            raise CompatError(f"{name}={value!r} is not supported; leave it out. ExportResult holds what was done.")


def choose_opset(asked: int | None, target: Target) -> int:
    """The opset of the file.

    Raises:
        CompatError: Neither this package nor the target takes the one that was asked for.
    """
    opset = target.opset if asked is None else asked
    low, high = max(MIN_OPSET, target.opsets[0]), target.opsets[1]
    if not low <= opset <= high:
        raise CompatError(f"opset_version={opset}: target {target.name!r} takes {low}..{high}; choose one of these.")
    return opset


def exporters_to_try(exporter: str | None, dynamo: bool | None, table: Any) -> tuple[Exporter, ...]:
    """The back ends in the order in which they are tried.

    Raises:
        CompatError: There is no such back end, or the two ways to name one contradict each other.
    """
    if exporter is not None and dynamo is not None and exporter != ("dynamo" if dynamo else "torchscript"):
        raise CompatError(f"exporter={exporter!r} and dynamo={dynamo} contradict each other; pass one of them.")
    if exporter is None and dynamo is not None:
        exporter = "dynamo" if dynamo else "torchscript"
    if exporter in (None, "auto"):
        # A translation table speaks to one exporter only.
        return ("dynamo",) if table else EXPORTERS
    for name in EXPORTERS:
        if exporter == name:
            return (name,)
    raise unknown_name("exporter", str(exporter), ("auto", *EXPORTERS))


def allowed_domains(allowed: bool | Collection[str], custom_opsets: Mapping[str, int] | None) -> bool | Collection[str]:
    """The domains besides ONNX's own in which nodes may stand; True for any."""
    if isinstance(allowed, bool):
        return True if allowed else tuple(custom_opsets or ())
    return (*allowed, *(custom_opsets or ()))


def mode_of(training: torch.onnx.TrainingMode) -> bool | None:
    """The mode of the twins: train, eval, or (None) whatever the model is in."""
    if training == torch.onnx.TrainingMode.PRESERVE:
        return None
    return bool(training == torch.onnx.TrainingMode.TRAINING)
