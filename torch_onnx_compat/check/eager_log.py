"""Logs every tensor that a model computes in eager torch: its place, a sample of its values, its rounding error.

The model runs twice: in float64 for the values, and in its own dtype for the rounding error of these values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._pytree import tree_leaves

from torch_onnx_compat.backends.internals.modes import DispatchMode
from torch_onnx_compat.check.compare import Array
from torch_onnx_compat.inputs.inputs import Inputs
from torch_onnx_compat.observe import Subject
from torch_onnx_compat.places import is_user_file, short
from torch_onnx_compat.prepare import Prepared, export_conditions
from torch_onnx_compat.stack import frames_of_model

SAMPLE = 4096
"""Elements of a tensor that are logged; those of a larger tensor are drawn at positions that its size determines."""

NOISE_FACTOR = 16.0
"""Largest error of a file that does not count as a difference, as a multiple of eager torch's own rounding error."""

FLOOR = {torch.float64: 1e-9, torch.float32: 1e-5, torch.float16: 1e-2, torch.bfloat16: 5e-2}
"""Least tolerance relative to a tensor's largest value: an engine may sum in another order."""

_MARK = "_torch_onnx_compat_step"


@dataclass(eq=False)
class Step:
    """One tensor that the model computed."""

    operator: str
    module: str
    kind: str
    """Class of the module."""
    statement: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    sample: Array
    inputs: tuple[int, ...]
    """Numbers of the steps that computed the operands."""
    varies: bool
    """Whether it depends on the model's inputs."""
    boundary: str = ""
    """Path of the module that returned it."""
    tolerance: float = 0.0

    @property
    def is_float(self) -> bool:
        """Whether it is a tensor of real numbers."""
        return self.dtype.is_floating_point

    @property
    def scale(self) -> float:
        """Largest finite magnitude."""
        finite = np.abs(self.sample[np.isfinite(self.sample)])
        return float(finite.max(initial=0.0))


@dataclass
class EagerLog:
    """The tensors that the model computed, in order."""

    steps: list[Step] = field(default_factory=list)
    outputs: list[int | None] = field(default_factory=list)
    """The step of each output."""


def run_eager(prepared: Prepared, inputs: Inputs) -> EagerLog:
    """Runs the original model and logs its tensors.

    Args:
        prepared: The model.
        inputs: The inputs to run it on.
    """
    with export_conditions(), sdpa_kernel(SDPBackend.MATH):
        own = log_run(prepared, inputs)
        try:
            exact = log_run(prepared, inputs, dtype=torch.float64)
        except Exception:  # the model insists on its own dtype
            exact = own
    if [s.shape for s in exact.steps] != [s.shape for s in own.steps]:
        exact = own
    for one, other in zip(own.steps, exact.steps, strict=True):
        one.tolerance = _tolerance(one, other)
        one.sample = other.sample
    return own


def _tolerance(own: Step, exact: Step) -> float:
    if not own.is_float:
        return 0.0
    noise = difference(own.sample, exact.sample)
    return max(NOISE_FACTOR * noise if np.isfinite(noise) else 0.0, FLOOR[own.dtype] * exact.scale)


def difference(one: Array, other: Array) -> float:
    """Largest absolute difference; infinite where NaN or infinities stand at other places."""
    finite = np.isfinite(one) & np.isfinite(other)
    if not np.array_equal(np.nan_to_num(one[~finite]), np.nan_to_num(other[~finite])):
        return float("inf")
    return float(np.abs(one[finite] - other[finite]).max(initial=0.0))


def sample(array: Array) -> Array:
    """The values that are compared, as float64."""
    flat = array.reshape(-1)
    chosen = flat if flat.size <= SAMPLE else flat[_positions(flat.size)]
    return chosen.astype(np.float64)


@cache
def _positions(size: int) -> Array:
    return np.sort(np.random.default_rng(size).integers(0, size, SAMPLE))


def log_run(
    prepared: Prepared, inputs: Inputs, log: OperatorLog | None = None, dtype: torch.dtype | None = None
) -> EagerLog:
    """Runs the original model once, and logs its tensors.

    Args:
        prepared: The model.
        inputs: The inputs to run it on.
        log: Takes the tensors; a new one by default.
        dtype: Floating-point type to run in; the model's own by default.
    """
    log = log or OperatorLog()
    twin = prepared.twin()
    tensors = [t.clone() for t in inputs.tensors]
    if dtype is not None:
        twin = twin.to(dtype)
        tensors = [t.to(dtype) if t.is_floating_point() else t for t in tensors]
    for tensor in tensors:
        setattr(tensor, _MARK, -1)
    subject = Subject(twin, inputs, boundary=prepared.boundary)
    with _track_modules(twin, log), log:
        results = subject(*tensors)
    log.log.outputs = [getattr(result, _MARK, None) for result in results]
    return log.log


class OperatorLog(DispatchMode):
    """Logs every operator; `modules` is the stack of modules that are running."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call,unused-ignore]
        self.log = EagerLog()
        self.modules: list[tuple[str, str]] = []
        self._last_write: dict[int, int] = {}
        """The last step that wrote in place, by storage."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        operands = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        marks = {mark for operand in operands for mark in self._marks(operand)}
        result = func(*args, **(kwargs or {}))
        statement = _statement()
        for value in tree_leaves(result):
            if isinstance(value, Tensor):
                self._add(func, value, marks, statement)
                if any(value is operand for operand in operands):
                    self._last_write[_storage(value)] = len(self.log.steps) - 1
        return result

    def _marks(self, tensor: Tensor) -> Iterator[int]:
        mark = getattr(tensor, _MARK, None)
        written = self._last_write.get(_storage(tensor))
        if written is not None and (mark is None or written > mark):
            yield written
        if mark is not None:
            yield mark

    def _add(self, func: Any, value: Tensor, marks: set[int], statement: str) -> None:
        steps = self.log.steps
        inputs = tuple(sorted(mark for mark in marks if mark >= 0))
        path, kind = self.modules[-1] if self.modules else ("", "")
        steps.append(
            Step(
                operator=str(func.overloadpacket),
                module=path,
                kind=kind,
                statement=statement,
                shape=(*value.shape, 2) if value.is_complex() else tuple(value.shape),
                dtype=value.dtype,
                sample=_sample_tensor(value),
                inputs=inputs,
                varies=-1 in marks or any(steps[i].varies for i in inputs),
            )
        )
        setattr(value, _MARK, len(steps) - 1)


def _storage(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _sample_tensor(value: Tensor) -> Array:
    value = value.detach()
    if value.is_quantized:
        value = value.dequantize()
    if value.is_complex():
        value = torch.view_as_real(value.resolve_conj())
    flat = value.reshape(-1)
    if flat.numel() > SAMPLE:
        flat = flat[torch.from_numpy(_positions(flat.numel()))]
    array: Array = flat.double().cpu().numpy().copy()
    return array


def _statement() -> str:
    """The innermost statement of the user's code that is running."""
    for frame in frames_of_model():
        if is_user_file(frame.f_code.co_filename):
            return short(frame.f_code.co_filename, frame.f_lineno)
    return ""


@contextmanager
def _track_modules(model: nn.Module, mode: OperatorLog) -> Iterator[None]:
    """Keeps the stack of running modules up to date."""
    handles: list[Any] = []

    def enter(path: str) -> Callable[..., None]:
        return lambda module, *_: mode.modules.append((path, type(module).__name__))

    def leave(path: str) -> Callable[..., None]:
        def hook(module: nn.Module, args: Any, result: Any) -> None:
            mode.modules.pop()
            for value in tree_leaves(result):
                mark = getattr(value, _MARK, -1)
                if mark >= 0:
                    mode.log.steps[mark].boundary = mode.log.steps[mark].boundary or path

        return hook

    for path, module in model.named_modules():
        handles.append(module.register_forward_pre_hook(enter(path)))
        handles.append(module.register_forward_hook(leave(path)))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
