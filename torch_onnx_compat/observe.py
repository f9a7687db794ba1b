"""Eager runs of the original model: the reference that files are judged by, and facts about sizes.

Every run is made on a fresh, unpatched twin, at most once for each case, and only when somebody asks; what verification
needs and what planning needs is one and the same run.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from torch_onnx_compat.backends.internals.modes import DispatchMode
from torch_onnx_compat.caller.attribute_snapshot import AttributeSnapshot
from torch_onnx_compat.caller.undo import Undo, random_states, undo_writes
from torch_onnx_compat.catalogue.entry import Symbolic
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.fast_path import FastPath
from torch_onnx_compat.functional.complex import Pair, view_as_real
from torch_onnx_compat.handlers import CaughtError, CaughtErrors
from torch_onnx_compat.inputs import tree
from torch_onnx_compat.inputs.fit import Fit, fits
from torch_onnx_compat.inputs.inputs import Inputs
from torch_onnx_compat.places import first_line, user_statement
from torch_onnx_compat.plan import Plan
from torch_onnx_compat.prepare import Boundary, Prepared
from torch_onnx_compat.region_reads import RegionReads
from torch_onnx_compat.threads import hear_threads
from torch_onnx_compat.tracing import is_tracing
from torch_onnx_compat.watch import CallPlace, ShapeLog

COPIED = 2**28
"""Bytes of parameters up to which a twin may have copies of them."""

EXAMPLE = "example"
"""The label of the run on the example."""

SHORT = 0.002
"""Seconds of a first run below which nobody needs to know what a second one takes."""


class ModelRefused(CompatError):
    """The original model raised an error on an input; the message names the statement."""


def _is_captured(tensors: Sequence[Tensor]) -> bool:
    """Whether a model is traced, or runs on tensors without values."""
    return is_tracing() or torch.compiler.is_compiling() or any(type(one) is not Tensor for one in tensors)


class Outputs:
    """What the last forward of a Subject returned: the tensors' paths, and what was no tensor."""

    def __init__(self) -> None:
        self.paths: list[tree.Path] = []
        self.dropped: list[str] = []


class Subject(nn.Module):
    """A twin behind a forward of flat tensors.

    Both exporters and the reference runs go through it, so nested arguments, constants among them, None outputs and
    Python numbers mean the same everywhere.

    Args:
        twin: The model to call.
        inputs: Structure of its arguments.
        scope: Context in which it runs, e.g. the plan's function rewrites.
        boundary: Calls it instead, where the caller wants other inputs or outputs than its own.
    """

    def __init__(self, twin: nn.Module, inputs: Inputs, scope: Any = None, boundary: Boundary | None = None) -> None:
        super().__init__()
        self.twin = twin
        self._inputs = inputs
        self._scope = scope
        self.boundary = boundary
        self.around: Any = None
        """A further context, which an exporter sets while it runs."""
        self._checks: list[Callable[[Any], None]] = []
        self.before_undo: Callable[[Undo, tuple[Tensor, ...]], tuple[Tensor, ...]] | None = None
        """Is given what is going to be undone and the results; returns the results."""
        # An object of its own: torch.export puts the module's attributes back as they were before the capture.
        self.outputs = Outputs()

    def wrap(self, scope: Callable[[], AbstractContextManager[Any]], *, inside: bool = False) -> None:
        """Adds a context around, or inside, the one in which the twin runs."""
        there = self._scope or nullcontext
        outer, inner = (there, scope) if inside else (scope, there)

        @contextmanager
        def both() -> Iterator[None]:
            with outer(), inner():
                yield

        self._scope = both

    @contextmanager
    def check_results(self, check: Callable[[Any], None]) -> Iterator[None]:
        """While active, a function looks at the tensors that forward returns, and may raise."""
        self._checks.append(check)
        try:
            yield
        finally:
            self._checks.remove(check)

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Runs the twin on the example's structure filled with these tensors; the result's tensors, in order."""
        scope = self._scope() if self._scope else nullcontext()
        threads = hear_threads() if _is_captured(tensors) else nullcontext()
        with threads, self.around or nullcontext(), scope, undo_writes(self.twin, tensors) as undo:
            flat = self.call(tensors)
            for check in self._checks:
                check(flat)
            if self.before_undo is not None:
                flat = self.before_undo(undo, flat)
            return undo.separate(flat)

    def call(self, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """One call of the twin, of which nothing is undone; within `before_undo` it is one more."""
        args, kwargs = self._inputs.call(tensors)
        return self._flat(self.boundary.call(self.twin, args, kwargs) if self.boundary else self.twin(*args, **kwargs))

    def state_dict(self, *args: Any, **options: Any) -> Any:
        """What nn.Module's returns; what models add to it that is no tensor, such as their options, is left out.

        TorchScript's trace detaches all that is in it.
        """
        state = super().state_dict(*args, **options)
        for name in [name for name, value in state.items() if not isinstance(value, Tensor)]:
            del state[name]
        return state

    def _flat(self, result: Any) -> tuple[Tensor, ...]:
        result = tree.map_leaves(result, _as_tensor, leaf=Pair)
        leaves, _ = tree.flatten(result)
        for path, tensor in leaves:
            if tensor.layout in (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc):
                name = tree.qualified_name(("output", *path))
                raise CompatError(f"{name} is a sparse tensor, which no output of a file can be; return it dense.")
        if not leaves:
            raise CompatError(
                "the model returns no tensor and no number; a file needs an output: return what it is for."
            )
        named = self.boundary.path_of if self.boundary else (lambda path: path)
        self.outputs.paths = [named(path) for path, _ in leaves]
        self.outputs.dropped = [
            f"output {tree.qualified_name(path) or 'output'} is a {type(value).__name__}, not a tensor; "
            f"left out of the file."
            for path, value in tree.constants(result)
        ]
        return tuple(tensor for _, tensor in leaves)


def _as_tensor(leaf: Any) -> Any:
    """A size or another number among the results becomes a tensor, recorded where the size is; a pair, real ones."""
    if isinstance(leaf, Pair):
        return view_as_real(leaf)
    if isinstance(leaf, torch.SymBool):
        return torch.full((), torch.sym_ite(leaf, 1, 0), dtype=torch.int64) == 1  # bool() would take the decision
    if isinstance(leaf, bool):
        return torch.tensor(leaf)
    if isinstance(leaf, (int, torch.SymInt)):
        return torch.full((), leaf, dtype=torch.int64)
    if isinstance(leaf, (float, torch.SymFloat)):
        return torch.full((), leaf)
    return leaf


@dataclass(frozen=True)
class Reference:
    """What the original model computes in eager torch."""

    outputs: tuple[Tensor, ...]
    paths: tuple[tree.Path, ...]
    dropped: tuple[str, ...]
    seconds: float
    fast_paths: tuple[str, ...] = ()
    """Paths of the modules that asked for torch's fast path of attention."""
    draws: tuple[str, ...] = ()
    """Whose random numbers were drawn: torch's, Python's, numpy's."""


@dataclass
class FirstCall:
    """A twin that was called on the example, and what that call has left for the next one."""

    subject: Subject
    attributes: tuple[str, ...]
    """Paths of the attributes of modules that it has changed."""
    outside: str
    """What it has changed outside of the twin; put back by now."""
    again: tuple[Tensor, ...] | ModelRefused | None
    """What a second call on the same inputs computes, before that is put back; None where nothing is."""
    note: str | None = None
    """What is to be said of it; None as long as nobody has asked."""


class Observation:
    """Eager runs of one prepared model.

    Args:
        prepared: The model.
        is_compared: Whether a file is going to be compared with it.
    """

    def __init__(self, prepared: Prepared, *, is_compared: bool = True) -> None:
        self.prepared = prepared
        self._is_compared = is_compared
        self._references: dict[str, Reference] = {}
        self.first_call: FirstCall | None = None
        """What the run on the example has left; None if nothing."""
        self._regions = RegionReads()
        self._fits: dict[tuple[int, ...], Fit | None] = {}
        """How whole numbers fit some sizes of the dynamic axes; None where they fit as they are, or in no way."""

    def reference(
        self,
        label: str,
        inputs: Inputs,
        dtype: torch.dtype | None = None,
        within: AbstractContextManager[Any] | None = None,
    ) -> Reference:
        """Runs the original on some inputs, once for each label.

        Args:
            label: Names the run.
            inputs: What to run it on.
            dtype: Floating-point type to run in; the model's own by default.
            within: Active while the model runs, and not while the run is made ready.

        Raises:
            ModelRefused: The model raised.
        """
        if label not in self._references:
            looks = label == EXAMPLE and self._is_compared
            self._references[label] = self._run(inputs, dtype, within or nullcontext(), looks_for_state=looks)
        return self._references[label]

    def on_fast_path(self, inputs: Inputs) -> Reference:
        """Runs the original with torch's fast path of attention on, as inference does outside of an export.

        Raises:
            ModelRefused: The model raised.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of nested tensors; the caller's own runs give them
            return self._run(inputs, None, nullcontext(), is_fast=True)

    def with_gradients(self, inputs: Inputs) -> Reference:
        """Runs the original as plain calls do: torch records what gradients need, for the caller's parameters.

        Raises:
            ModelRefused: The model raised.
        """
        return self._run(inputs, None, torch.enable_grad(), records=True)

    def takes_at_most(self, seconds: float) -> bool:
        """Whether a run on the example takes no longer; a second run is made only where that matters."""
        return self.reference(EXAMPLE, self.prepared.inputs).seconds <= seconds or self.seconds <= seconds

    @property
    def seconds(self) -> float:
        """What a run of the original on the example takes once torch is warm: its first run may take ten times that."""
        inputs = self.prepared.inputs
        first = self.reference(EXAMPLE, inputs).seconds
        return first if first < SHORT else min(first, self.reference("example, once more", inputs).seconds)

    def run_within(
        self, scope: AbstractContextManager[Any], inputs: Inputs, look: Callable[[Any], None] = lambda _: None
    ) -> None:
        """Runs the original within a context that looks on; the results are dropped.

        Args:
            scope: Active while the model runs.
            inputs: What to run it on.
            look: Is given the results, within the context.

        Raises:
            ModelRefused: The model raised.
        """
        subject = Subject(self.prepared.twin(), inputs, boundary=self.prepared.boundary)
        try:
            with self._regions.refuse(), scope, subject.check_results(look):
                subject(*[t.clone() for t in inputs.tensors])
        except MemoryError:
            raise
        except Exception as error:
            raise ModelRefused(_describe(error)) from error

    def caught_errors(self, inputs: Inputs) -> Collection[CaughtError]:
        """The errors that the original catches on some inputs; none where it raises one."""
        errors = CaughtErrors(self.prepared.reach.handlers)
        with suppress(ModelRefused):
            self.run_within(errors, inputs)
        return errors.found

    def accepts(self, inputs: Inputs) -> bool:
        """Whether the original takes some inputs, or, at their sizes, whole numbers that fit these."""
        if self._takes(inputs):
            return True
        fitted = self.fit(inputs)
        return fitted is not inputs and self._takes(fitted)

    def fit(self, inputs: Inputs) -> Inputs:
        """Inputs whose whole numbers fit their sizes, where that is why the original refuses them; else the same.

        Args:
            inputs: The example at other sizes. How its numbers fit is asked once for each sizes.
        """
        key = tuple(inputs.sizes().values())
        if key not in self._fits:
            ways = list(fits(inputs))
            is_refused = bool(ways) and not self._takes(inputs)
            self._fits[key] = next((way for way in ways if self._takes(way.of(inputs))), None) if is_refused else None
        way = self._fits[key]
        return inputs if way is None else way.of(inputs)

    def at_sizes(self, sizes: Mapping[str, int]) -> Inputs:
        """The example at other sizes, with whole numbers that fit these if the original refuses its own there."""
        return self.fit(self.prepared.inputs.at_sizes(sizes))

    def _takes(self, inputs: Inputs) -> bool:
        try:
            self.run_within(nullcontext(), inputs)
        except ModelRefused:
            return False
        return True

    def _run(
        self,
        inputs: Inputs,
        dtype: torch.dtype | None,
        within: AbstractContextManager[Any],
        *,
        is_fast: bool = False,
        looks_for_state: bool = False,
        records: bool = False,
    ) -> Reference:
        twin = self.prepared.twin()
        if records:
            for ours, theirs in zip(twin.parameters(), self.prepared.model.parameters(), strict=False):
                ours.requires_grad_(theirs.requires_grad)
        tensors = [t.clone() for t in inputs.tensors]  # forward may write to its inputs
        if dtype is not None:
            twin = twin.to(dtype)
            tensors = [t.to(dtype) if t.is_floating_point() else t for t in tensors]
        subject = Subject(twin, inputs, boundary=self.prepared.boundary)
        fast_path = FastPath(is_on=is_fast)
        if looks_for_state:
            subject.before_undo = partial(self._look_for_state, AttributeSnapshot(twin), subject, inputs)
        before = random_states()
        draws: tuple[str, ...] = ()
        start = time.perf_counter()
        try:
            with self._regions.refuse(), within, fast_path:

                def look(_: Any) -> None:  # before the caller's states are put back
                    nonlocal draws
                    draws = tuple(name for name, state in random_states().items() if state != before[name])

                with subject.check_results(look):
                    outputs = subject(*tensors)
        except MemoryError:
            raise
        except Exception as error:
            raise ModelRefused(_describe(error)) from error
        seconds = time.perf_counter() - start
        kept = tuple(o.detach().clone() if _is_one_of(o, tensors) else o.detach() for o in outputs)
        paths, dropped = tuple(subject.outputs.paths), tuple(subject.outputs.dropped)
        return Reference(kept, paths, dropped, seconds, fast_path.askers(twin), draws)

    def _look_for_state(
        self, before: AttributeSnapshot, subject: Subject, inputs: Inputs, undo: Undo, results: tuple[Tensor, ...]
    ) -> tuple[Tensor, ...]:
        """Notes what the run on the example leaves for a next one; returns its results, in memory of their own then."""
        attributes, outside = before.changed(), undo.change()
        if not (attributes or outside):
            return results
        results = tuple(result.detach().clone() for result in results)
        again: tuple[Tensor, ...] | ModelRefused | None = None
        if outside:
            try:
                again = subject.call([tensor.clone() for tensor in inputs.tensors])
            except Exception as error:
                again = ModelRefused(_describe(error))
        self.first_call = FirstCall(subject, attributes, outside, again)
        return results

    def trace_inputs(self) -> Inputs:
        """The example with every dynamic axis long enough to trace.

        The model is run on the example first, if it was not yet: that shows which parameters forward writes to. Where
        nobody needs the results, and copies of all parameters cost less than the run, twins have copies instead.
        """
        if self._is_compared or not self.prepared.copy_parameters(COPIED):
            with suppress(ModelRefused):  # the export itself reports it
                self.reference(EXAMPLE, self.prepared.inputs)
        return self.prepared.inputs.long_enough_to_trace()

    def check_example(self, trace_inputs: Inputs) -> None:
        """Runs the model on the example as it is and as it is traced.

        Raises:
            CompatError: The model fails on one of them; says on which sizes.
        """
        example = self.prepared.inputs
        for label, inputs in (("example", example), ("grown example", trace_inputs)):
            try:
                self.reference(label, inputs)
            except ModelRefused as refusal:
                sizes = ", ".join(f"{n}={s}" for n, s in inputs.sizes().items() if s != example.sizes()[n])
                what = f"input with {sizes}, sizes that are declared dynamic" if sizes else "example input"
                raise CompatError(f"the model itself fails on the {what}: {refusal}{self._other_types()}") from refusal

    def _other_types(self) -> str:
        """A hint where inputs are of another type than the weights, as numpy's float64 and pictures in uint8 are."""
        weights = {tensor.dtype for tensor in self.prepared.model.parameters() if tensor.is_floating_point()}
        inputs = self.prepared.inputs
        others = [
            f"input {name!r} is {_bare(tensor.dtype)}"
            for name, tensor in zip(inputs.names, inputs.tensors, strict=True)
            if tensor.dtype not in weights and (tensor.is_floating_point() or tensor.dtype is torch.uint8)
        ]
        if len(weights) != 1 or not others:
            return ""
        (wanted,) = weights
        return f". Here {', '.join(others)}, and the weights are {_bare(wanted)}: pass x.to({wanted})."

    def dry_run(self, subject: Subject, plan: Plan, inputs: Inputs) -> None:
        """Runs a rewritten twin in eager torch so that its plan is filled in, operators of symbolics included.

        Raises:
            CompatError: The model fails.
        """
        log = _OperatorLog({e.op: e for e in plan.symbolics()}, plan)
        try:
            with log:
                subject(*[t.clone() for t in inputs.tensors])
        except CompatError:
            raise
        except Exception as error:
            raise CompatError(f"the model itself fails on the example: {_describe(error)}") from error

    def log_shapes(
        self, functions: Sequence[Any], inputs: Inputs
    ) -> list[tuple[CallPlace | None, list[tuple[int, ...]]]] | None:
        """Place of each call of these functions, and its arguments' shapes; None when the model refuses the inputs."""
        subject = Subject(self.prepared.twin(), inputs, boundary=self.prepared.boundary)
        log = ShapeLog(functions)
        try:
            with log:
                subject(*[t.clone() for t in inputs.tensors])
        except MemoryError:
            raise
        except Exception:  # the model's own refusal of a size that was only a probe
            return None
        return log.calls


class _OperatorLog(DispatchMode):
    """Notes the symbolics whose operators are called."""

    def __init__(self, symbolics: dict[str, Symbolic], plan: Plan) -> None:
        super().__init__()  # type: ignore[no-untyped-call,unused-ignore]
        self._symbolics, self._plan = symbolics, plan

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        entry = self._symbolics.get(func._schema.name)
        if entry is not None:
            self._plan.applied(entry.name, "")
        return func(*args, **(kwargs or {}))


def _bare(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _describe(error: BaseException) -> str:
    if isinstance(error, CompatError):
        return str(error)
    place = user_statement(error)
    return f"{type(error).__name__}: {first_line(error)}{f' (at {place})' if place else ''}"


def _is_one_of(tensor: Tensor, tensors: Sequence[Tensor]) -> bool:
    return any(tensor is t or (tensor.numel() and tensor.data_ptr() == t.data_ptr()) for t in tensors)
