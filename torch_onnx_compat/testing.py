"""For tests of entries, this project's and a plugin's: export a model and hold the file against eager torch."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import onnx_ir as ir
import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from torch_onnx_compat.catalogue.catalogue import catalogue
from torch_onnx_compat.catalogue.entry import EXPORTERS, Entry, Exactness, Exporter, Symbolic
from torch_onnx_compat.catalogue.registry import entry_of
from torch_onnx_compat.check.options import Verify
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.export import export_compat
from torch_onnx_compat.functional.complex import Pair
from torch_onnx_compat.plan import make_plan
from torch_onnx_compat.result import ExportResult
from torch_onnx_compat.targets import choose_opset, load_target

ROUNDINGS = 64
"""How many units in the last place a ROUNDING entry may be off in a test, relative to the value and its neighbours."""


@dataclass(frozen=True)
class Example:
    """A row of a family's tests: a model that calls what an entry replaces, and a body that the test must catch.

    Attributes:
        entry: Name of the entry.
        model: A module or function that calls what the entry replaces, every overload and option that it serves.
        inputs: Its example inputs: values, shapes and types that a wrong body gets wrong.
        broken: A body that is nearly right; by default the entry's own, whose first result is off by one.
        dynamic: As for export_compat; None for inputs without an axis that may vary.
        samples: Further inputs to compare on, of other sizes or values.
        leaves: A model of the same inputs that the entry has to leave alone.
        declines: For an entry that refuses always, what its message says. There is no file, and nothing to compare.
        exporters: Those that the model is tried on.
        claims: Those on which stock is shown to fail or err; by default those that the entry says need it.
        options: Further keywords of export_compat.
    """

    entry: str
    model: Any
    inputs: tuple[Any, ...]
    broken: Callable[..., Any] | None = None
    dynamic: str | Mapping[str, Any] | None = "batch"
    samples: Sequence[Any] = ()
    leaves: Any = None
    declines: str = ""
    exporters: Sequence[Exporter] = EXPORTERS
    claims: Sequence[Exporter] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def _all_options(self) -> dict[str, Any]:
        return {"dynamic": self.dynamic, "samples": self.samples, **self.options}

    def needed_on(self) -> list[Exporter]:
        """The exporters on which the entry is armed for the example's options."""
        return [exporter for exporter in self.exporters if is_armed(self.entry, exporter, self.options)]

    def claimed_on(self) -> list[Exporter]:
        """The exporters that are said to fail or err without the entry; where none is, those that it serves.

        None of an entry that refuses always: whether the export fails is torch's matter, and it only says why.
        """
        if self.declines:
            return []
        if self.claims is not None:
            return list(self.claims)
        exporters = catalogue()[self.entry].need.exporters
        return [exporter for exporter in self.needed_on() if exporter in exporters or not exporters]

    def assert_matches(self, exporter: Exporter) -> None:
        """The file is right, at another batch too; the entry was applied exactly where it is needed.

        Raises:
            VerificationError: A value is off.
            AssertionError: The entry was not applied though it is armed, or was though it is not, or did not decline.
        """
        if self.declines:
            assert self.declines in self._refusal(exporter, catalogue()[self.entry])
            return
        assert_entry(self.entry, self.model, self.inputs, exporter, **self._all_options)

    def assert_leaves_alone(self, exporter: Exporter) -> None:
        """The entry does nothing to `leaves`, whose file is right.

        Raises:
            AssertionError: The entry was applied, or says that it could have been.
        """
        result = assert_same_outputs(self.leaves, self.inputs, exporter, **self._all_options)
        assert self.entry not in {note.entry for note in (*result.applied, *result.declined)}

    def assert_still_needed(self, exporter: Exporter) -> None:
        """Stock torch fails, errs, or writes what the target does not run.

        Raises:
            AssertionError: Today's torch does without the entry.
        """
        assert_still_needed(self.entry, self.model, self.inputs, exporter, **self._all_options)

    def assert_bites(self, exporter: Exporter) -> None:
        """The test fails with the entry's body broken.

        Raises:
            AssertionError: It did not, or only since the file of the broken body does not run.
        """
        entry = catalogue()[self.entry]
        if self.declines:
            silent = replace(entry, body=functools.wraps(entry.body)(lambda *_, **__: NotImplemented))
            assert self.declines not in self._refusal(exporter, silent)
            return
        broken = replace(entry, body=self.broken or off_by_one(entry))
        registry = catalogue().with_entries([broken])  # without the siblings that a broken symbolic replaces
        options = {"rewrites": [broken], **self._all_options}
        options["exclude"] = [name for name in options.get("exclude", ()) if name in registry]
        options.setdefault("control_flow", False)  # a wrong file is no reason to search the model for decisions here
        try:
            assert_same_outputs(self.model, self.inputs, exporter, uses=(self.entry,), **options)
        except VerificationError as error:
            if not error.table:
                raise AssertionError(f"{self.entry}: the file of the broken body does not run") from error
            return
        raise AssertionError(f"{self.entry}: the example's file is right with the body broken")

    def _refusal(self, exporter: Exporter, entry: Entry) -> str:
        """What an export says of itself, of a model that an entry refuses."""
        options = {"verify": False, **self._all_options}
        try:
            result = export_compat(self.model, self.inputs, exporter=exporter, rewrites=[entry], **options)
        except CompatError as error:
            return str(error)
        return " ".join(map(str, result.declined))


def off_by_one(entry: Entry) -> Callable[..., Any]:
    """An entry's body, the first of whose results is wrong: 1 more; the opposite of booleans and of a symbolic's."""

    @functools.wraps(entry.body)
    def broken(*args: Any, **kwargs: Any) -> Any:
        result = entry.body(*args, **kwargs)
        if result is NotImplemented:
            return result
        if isinstance(entry, Symbolic):
            op = args[0]
            first, *rest = result if isinstance(result, tuple) else (result,)
            # Of any type, which an exporter may not know of a result: 1 for 0, else 0.
            wrong = op.CastLike(op.Not(op.Cast(first, to=int(ir.DataType.BOOL))), first)
            return (wrong, *rest) if rest else wrong
        if isinstance(result, nn.Module):
            return nn.Sequential(result, _OffByOne())
        leaves, structure = pytree.tree_flatten(result, is_leaf=lambda leaf: isinstance(leaf, Pair))
        first = next(i for i, leaf in enumerate(leaves) if isinstance(leaf, (Tensor, Pair, int, float)))
        leaves[first] = _more(leaves[first])
        return pytree.tree_unflatten(leaves, structure)

    return broken


class _OffByOne(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + 1


def _more(value: Any) -> Any:
    if isinstance(value, Pair):
        return Pair(value.real + 1, value.imag)
    return torch.logical_not(value) if isinstance(value, Tensor) and value.dtype == torch.bool else value + 1


def assert_same_outputs(
    model: Any,
    args: Any,
    exporter: Exporter,
    *,
    uses: Sequence[str] = (),
    dynamic: str | Mapping[str, Any] | None = None,
    opset: int | None = None,
    include: Collection[str] = (),
    exclude: Collection[str] = (),
    kwargs: Mapping[str, Any] | None = None,
    samples: Sequence[Any] = (),
    **options: Any,
) -> ExportResult:
    """Exports a model in memory and compares the file with eager torch on the original.

    The tolerance is not the test's to choose: it follows from the exactness of the entries in `uses`, and from the
    whole-model default where there are none.

    Args:
        model: A module or function.
        args: Its example inputs.
        exporter: Back end.
        uses: Entries that must have been applied.
        dynamic: As for export_compat.
        opset: Opset of the file; the target's preferred one by default.
        include: As for export_compat.
        exclude: As for export_compat.
        kwargs: As for export_compat.
        samples: As for export_compat.
        **options: Further keywords of export_compat.

    Returns:
        The result.

    Raises:
        VerificationError: A value is off.
        AssertionError: An entry in `uses` was not applied.
    """
    options.setdefault("verify", _verify([_entry(name, options) for name in uses]))
    result = export_compat(
        model,
        args,
        kwargs=kwargs,
        exporter=exporter,
        dynamic=dynamic,
        opset_version=opset,
        include=include,
        exclude=exclude,
        samples=samples,
        **options,
    )
    applied = {note.entry for note in result.applied}
    missing = [name for name in uses if name not in applied]
    assert not missing, f"not applied: {', '.join(missing)}\n{result}"
    return result


def assert_entry(name: str, model: Any, args: Any, exporter: Exporter, **options: Any) -> ExportResult:
    """Checks that the file is right, and that an entry was applied exactly where it is needed.

    Args:
        name: The entry, of the catalogue or of `symbolics` and `rewrites`.
        model: A module or function that calls what the entry stands for.
        args: Its example inputs.
        exporter: Back end.
        **options: As for assert_same_outputs.

    Returns:
        The result.

    Raises:
        VerificationError: A value is off.
        AssertionError: The entry was not applied though this exporter needs it, or was applied though it does not.
    """
    needed = is_armed(name, exporter, options)
    result = assert_same_outputs(model, args, exporter, uses=(name,) if needed else (), **options)
    assert needed or name not in {note.entry for note in result.applied}, f"{name} is not needed on {exporter}"
    return result


def assert_still_needed(name: str, model: Any, args: Any, exporter: Exporter, **options: Any) -> None:
    """Checks an entry's `needed_on`, `always` or `avoids` against today's torch, by leaving the entry out.

    Args:
        name: The entry, of the catalogue or of `symbolics` and `rewrites`.
        model: A module or function that calls what the entry stands for.
        args: Its example inputs.
        exporter: Back end.
        **options: As for assert_same_outputs.

    Raises:
        AssertionError: The export is right without the entry, though this exporter is said to need it; of an entry
            that is said to serve always, right and no larger; of one that avoids an operator, right and without it.
        CompatError: The export fails without the entry, though this exporter is said not to need it.
    """
    need, armed = _entry(name, options).need, is_armed(name, exporter, options)
    try:
        without = {**options, "exclude": [name, *options.get("exclude", ())]}
        stock = assert_same_outputs(model, args, exporter, **without)
    except CompatError:
        if not armed:
            raise
        return
    if need.always and exporter not in need.exporters:  # it may also serve to make the file smaller
        ours = assert_same_outputs(model, args, exporter, **options)
        assert ours.nodes.total() < stock.nodes.total(), f"no smaller with {name} on {exporter}"
    elif need.avoids and exporter not in need.exporters:
        found = [operator for operator in need.avoids if stock.nodes[operator.op_type]]
        assert found, f"torch {torch.__version__} writes none of {', '.join(map(str, need.avoids))} on {exporter}"
    else:
        assert not armed, f"torch {torch.__version__} is right without {name} on {exporter}"


def is_armed(name: str, exporter: Exporter, options: Mapping[str, Any]) -> bool:
    """Whether an entry is wanted on this exporter with these keywords of assert_same_outputs."""
    target = load_target(options.get("target", "onnxruntime"))
    registry = catalogue().with_entries([*options.get("symbolics", ()), *options.get("rewrites", ())])
    plan = make_plan(
        registry,
        exporter=exporter,
        opset=choose_opset(options.get("opset"), target),
        target=target,
        include=options.get("include", ()),
        allow_approximate=options.get("allow_approximate", False),
    )
    return name in plan.armed


def _entry(name: str, options: Mapping[str, Any]) -> Entry:
    """The entry of that name among those of this call and those of the catalogue."""
    extra = [entry_of(item) for item in (*options.get("symbolics", ()), *options.get("rewrites", ()))]
    return next((entry for entry in extra if entry.name == name), None) or catalogue()[name]


def _verify(entries: Sequence[Entry]) -> Verify:
    if not entries:
        return Verify()
    worst = max(entries, key=lambda e: list(Exactness).index(e.exactness))
    if worst.exactness is Exactness.BITWISE:
        return Verify(rtol=0.0, atol=0.0)
    if worst.exactness is Exactness.APPROXIMATE:
        return Verify(rtol=worst.error, atol=worst.error)
    rounding = ROUNDINGS * torch.finfo(torch.float32).eps
    return Verify(rtol=rounding, atol=rounding)
