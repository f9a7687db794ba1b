"""What the caller asked for, as a few frozen values: what is exported, cut, patched, written and proven.

The keywords of export_compat are read here, once; the steps see these values only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np
import torch

from torch_onnx_compat.catalogue.entry import EXPORTERS, MIN_OPSET, Exporter
from torch_onnx_compat.catalogue.registry import Registry
from torch_onnx_compat.check.options import Verify
from torch_onnx_compat.errors import ArgumentError, unknown_name
from torch_onnx_compat.places import PlaceSet
from torch_onnx_compat.precision.formats import Half
from torch_onnx_compat.precision.int8.request import Request
from torch_onnx_compat.publish.destination import check_model_destination
from torch_onnx_compat.targets import Target

METADATA_PREFIX = "torch_onnx_compat."
"""Entries of a file's metadata that begin so are the export's own."""


@dataclass(frozen=True)
class Cut:
    """Which part of the model goes into the file, and what becomes of the rest."""

    outputs: Sequence[str] | None = None
    submodule: str | None = None
    split: Sequence[str] = ()
    state: Sequence[str] = ()
    keep_as_function: Any = ()
    preprocess: Any = "keep"
    postprocess: Any = "keep"

    def __post_init__(self) -> None:
        for keyword in ("outputs", "split", "state", "keep_as_function"):
            check_list(keyword, getattr(self, keyword))

    def with_entries(self, include: Collection[str], exclude: Collection[str]) -> Cut:
        """The same, where `include` and `exclude` name what a keyword asks for too.

        Raises:
            CompatError: They contradict the keywords.
        """
        check_list("include", include)
        check_list("exclude", exclude)
        from_keywords: dict[str, Any] = {}
        for name, (keyword, value) in ENTRIES_OF_KEYWORDS.items():
            given = getattr(self, keyword)
            if given == value and name in exclude:
                raise ArgumentError(
                    f"{keyword}={value!r} and exclude=[{name!r}] contradict each other; leave one of them out."
                )
            if name in include:
                if given not in ("keep", value):
                    raise ArgumentError(f"{keyword}={given!r} and include=[{name!r}] contradict each other; pass one.")
                from_keywords[keyword] = value
        return replace(self, **from_keywords)


ENTRIES_OF_KEYWORDS = {
    "extract_preprocessing": ("preprocess", "extract"),
    "fold_preprocessing": ("preprocess", "fold"),
    "strip_postprocessing": ("postprocess", "strip"),
}
"""What a keyword asks for is an entry too, by these names."""


@dataclass(frozen=True)
class Patch:
    """Which entries may change the model on its way."""

    registry: Registry
    include: Collection[str] = ()
    exclude: Collection[str] = ()
    allow_approximate: bool = False
    allow_baked: PlaceSet = field(default_factory=PlaceSet)
    """Places of Python decisions that may be frozen."""


@dataclass(frozen=True)
class File:
    """What the file is to be, and where it goes."""

    opset: int
    target: Target
    destination: Any = None
    output_names: tuple[str, ...] = ()
    domains: bool | Collection[str] = False
    """Domains besides ONNX's own in which nodes may stand; True for any."""
    optimize: bool = True
    scales: bool = False
    """Whether the scales behind convolutions are multiplied into their weights, which rounds otherwise."""
    export_params: bool = True
    keep_initializers_as_inputs: bool = False
    external_data: bool | None = None
    precision: Half | Request | None = None
    """The narrower format; None for the model's own types."""
    is_opset_free: bool = False
    """Whether the opset is the target's choice, not the caller's."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    """The caller's own entries of the file's metadata."""

    def __post_init__(self) -> None:
        check_model_destination(self.destination)
        _check_metadata(self.metadata)
        if self.precision is None:
            return
        if not isinstance(self.precision, Half):
            self.precision.check(self.opset, self.target)
        for keyword, unfit in (("export_params", False), ("keep_initializers_as_inputs", True)):
            if getattr(self, keyword) is unfit:
                raise ArgumentError(
                    f"precision={self.precision.name!r} and {keyword}={unfit} contradict each other: weights that are "
                    f"inputs keep their types; leave one of them out."
                )

    def other_opsets(self) -> list[int]:
        """The opsets that the target takes too, up to two later ones, then the one before."""
        low, high = self._range()
        return [o for o in (self.opset + 1, self.opset + 2, self.opset - 1) if low <= o <= high]

    def later_opsets(self, least: int) -> list[int]:
        """The first opset from `least` on that the target takes; none if it takes none."""
        low, high = self._range()
        return [max(least, low)] if self.opset < least <= high else []

    def _range(self) -> tuple[int, int]:
        return max(MIN_OPSET, self.target.opsets[0]), min(LAST_OPSET, self.target.opsets[1])


Quality = Literal["size", "latency"]


def quality_of(optimize: Any) -> Quality | None:
    """By what the file is chosen among those of all exporters; None where the first that is proven is taken.

    Raises:
        CompatError: `optimize` is neither a bool nor the name of a quality.
    """
    if isinstance(optimize, bool):
        return None
    if optimize in get_args(Quality):
        quality: Quality = optimize
        return quality
    raise ArgumentError(f"optimize={optimize!r}; wanted True, False, {' or '.join(map(repr, get_args(Quality)))}.")


@dataclass(frozen=True)
class Proof:
    """How the file is compared with the model."""

    verify: Verify | None
    """None leaves it unproven."""
    samples: Sequence[Any] = ()

    @classmethod
    def from_keywords(cls, verify: Any, samples: Sequence[Any]) -> Proof:
        """What the keyword `verify` means: a bool, "target" or a Verify.

        Raises:
            CompatError: It is none of these, or `samples` is no list.
        """
        if not isinstance(verify, (bool, Verify)) and verify != "target":
            raise ArgumentError(
                f"verify={verify!r} is a {type(verify).__name__}; wanted True, False, 'target' or Verify(...)."
            )
        if isinstance(samples, str) or not isinstance(samples, Sequence):
            raise ArgumentError(
                f"samples is a {type(samples).__name__}; wanted a list of inputs, such as [(x,), {{'x': x}}]."
            )
        how = verify if isinstance(verify, Verify) else Verify(on_target=verify == "target")
        return cls(how if verify else None, samples)


@dataclass(frozen=True)
class Exporters:
    """Which of torch's exporters are tried, in order, and what only one of them takes."""

    order: tuple[Exporter, ...] = EXPORTERS
    custom_opsets: Mapping[str, int] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)


def check_list(keyword: str, value: Any) -> None:
    """Refuses what is no list, and one name where several are wanted: Python would read its letters as names.

    Raises:
        CompatError: The value is a string, or nothing that has items.
    """
    if isinstance(value, str):
        raise ArgumentError(f"{keyword}={value!r} is a str; wanted a list: {keyword}=[{value!r}].")
    if value is not None and not isinstance(value, Iterable):
        raise ArgumentError(f"{keyword}={value!r} is a {type(value).__name__}; wanted a list.")


FLAGS = (
    *("dynamo", "allow_approximate", "control_flow", "verbose", "external_data", "export_params"),
    *("keep_initializers_as_inputs", "do_constant_folding", "autograd_inlining", "report"),
)
"""The keywords that are true or false; some may be left to the export with None."""


def check_flags(given: Mapping[str, Any]) -> None:
    """Refuses a flag that is a text, say: every text is true.

    Raises:
        CompatError: One is neither a bool, 0, 1 nor None.
    """
    for name, value in given.items():
        if value is not None and not (isinstance(value, (bool, int, np.bool_)) and value in (False, True)):
            raise ArgumentError(f"{name}={value!r} is a {type(value).__name__}; wanted True or False.")


def _check_metadata(metadata: Any) -> None:
    if not isinstance(metadata, Mapping):
        raise ArgumentError(f"metadata={metadata!r}: wanted a dict of texts, such as {{'labels': 'cat, dog'}}.")
    for key, value in metadata.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise ArgumentError(
                f"metadata[{key!r}] is a {type(value).__name__}; ONNX's metadata are texts by texts: use str() or "
                f"json.dumps()."
            )
        if key.startswith(METADATA_PREFIX):
            raise ArgumentError(f"metadata[{key!r}]: names that begin with {METADATA_PREFIX!r} are the export's own.")


IGNORED_AT_DEFAULTS: dict[str, tuple[Any, ...]] = {
    "profile": (False,),
    "dump_exported_program": (False,),
    "operator_export_type": (None, torch.onnx.OperatorExportTypes.ONNX),
    "export_modules_as_functions": (False,),
    "fallback": (False,),
}
"""Keywords of torch.onnx.export that have no meaning here, and their defaults, which are accepted."""

_INSTEAD = {
    "profile": "result.seconds has the time of each step",
    "dump_exported_program": "report=True writes what is known of an export",
    "operator_export_type": "allow_custom_domains=True lets operators of other domains stand",
    "export_modules_as_functions": "keep_as_function=[Attention] keeps modules as functions",
    "fallback": "exporter='auto' tries both exporters, and is the default",
}


def check_keywords(given: Mapping[str, Any], known: Iterable[str]) -> None:
    """Refuses what torch.onnx.export takes but this cannot honour, rather than ignoring it."""
    for name, value in given.items():
        if name not in IGNORED_AT_DEFAULTS:
            raise unknown_name("keyword", name, (*known, *IGNORED_AT_DEFAULTS))
        if value not in IGNORED_AT_DEFAULTS[name]:
            raise ArgumentError(f"{name}={value!r} is not supported; leave it out: {_INSTEAD[name]}.")


LAST_OPSET = 23
"""The last opset that is tried where nobody asked for one."""


def exporters_to_try(exporter: str | None, dynamo: bool | None, table: Any) -> tuple[Exporter, ...]:
    """The back ends in the order in which they are tried.

    Raises:
        CompatError: There is no such back end, or the two ways to name one contradict each other.
    """
    if exporter is not None and dynamo is not None and exporter != ("dynamo" if dynamo else "torchscript"):
        raise ArgumentError(f"exporter={exporter!r} and dynamo={dynamo} contradict each other; pass one of them.")
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
    """The domains besides ONNX's own in which nodes may stand; True for any.

    Raises:
        CompatError: One of the two is of another kind.
    """
    if custom_opsets is not None and not isinstance(custom_opsets, Mapping):
        raise ArgumentError(
            f"custom_opsets is a {type(custom_opsets).__name__}; wanted a dict of domain to version, such as "
            f"{{'com.example': 1}}."
        )
    if isinstance(allowed, str):
        check_list("allow_custom_domains", allowed)
    if not isinstance(allowed, (bool, Collection)):
        raise ArgumentError(
            f"allow_custom_domains={allowed!r} is a {type(allowed).__name__}; wanted True, False or a list of domains."
        )
    if isinstance(allowed, bool):
        return True if allowed else tuple(custom_opsets or ())
    return (*allowed, *(custom_opsets or ()))


def mode_of(training: torch.onnx.TrainingMode) -> bool | None:
    """The mode of the twins: train, eval, or (None) whatever the model is in.

    Raises:
        CompatError: It is no TrainingMode.
    """
    if not isinstance(training, torch.onnx.TrainingMode):
        raise ArgumentError(
            f"training={training!r} is a {type(training).__name__}; wanted a torch.onnx.TrainingMode, such as "
            f"TrainingMode.EVAL."
        )
    if training == torch.onnx.TrainingMode.PRESERVE:
        return None
    return bool(training == torch.onnx.TrainingMode.TRAINING)
