"""Faults in the middle of an export: an exception at any line of the package, and a process that is killed.

An export over an old file is interrupted somewhere. Afterwards the old file or the new one is whole, and everything
else of the process is as it was: the caller's model, torch's functions and switches, the streams, the folders.
"""

from __future__ import annotations

import builtins
import copy
import gc
import hashlib
import logging
import math
import operator
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import onnxruntime
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import torch_onnx_compat
from torch_onnx_compat import export_compat
from torch_onnx_compat.backends import internals

ROOT = Path(torch_onnx_compat.__file__).parents[1]
PACKAGES = tuple(str(ROOT / name) + os.sep for name in ("torch_onnx_compat", "symbolics", "rewrites"))
EXCEPTIONS: dict[str, type[BaseException]] = {
    "RuntimeError": RuntimeError,
    "KeyboardInterrupt": KeyboardInterrupt,
    "MemoryError": MemoryError,
}
MESSAGE = "injected by the fault test"


# What is exported


class Plain(nn.Module):
    """Statistics, a buffer that forward writes, an operator that an entry replaces, a line on the standard output."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Linear(8, 5)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        pooled = torch.remainder(self.norm(self.conv(x)), 0.7).mean((2, 3))
        return self.head(pooled)


class Decides(Plain):
    """Another branch for bright pictures: exportable with the decision rewritten only."""

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        if x.abs().mean() > 10:
            y = y * 2
        return y


class Normalizes(Plain):
    """Preprocessing that can be extracted."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.4, 0.5, 0.6]).view(3, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        return super().forward((x - self.mean) / 0.25)


class Refused(Plain):
    """No exporter takes it: the shape of the result depends on the values."""

    def forward(self, x: Tensor) -> Tensor:
        return (
            super().forward(x)[: int(np.random.default_rng(0).integers(1, 2))] + torch.linalg.eigvals(x[0]).real.sum()
        )


@dataclass(frozen=True)
class Scenario:
    """An export over an old file."""

    model: Callable[[], nn.Module]
    options: dict[str, Any] = field(default_factory=dict)
    is_refused: bool = False


SCENARIOS = {
    "torchscript": Scenario(Plain, {"exporter": "torchscript", "dynamic": "batch"}),
    "dynamo": Scenario(Plain, {"exporter": "dynamo", "dynamic": "batch"}),
    "control flow": Scenario(Decides, {"exporter": "torchscript"}),
    "external": Scenario(Plain, {"exporter": "torchscript", "external_data": True}),
    "stages": Scenario(Normalizes, {"exporter": "torchscript", "preprocess": "extract"}),
    "refused": Scenario(Refused, {"exporter": "torchscript"}, is_refused=True),
}
PICTURE = torch.linspace(-2, 2, 2 * 3 * 8 * 8).reshape(2, 3, 8, 8).sin()


def make_model(scenario: Scenario, seed: int) -> nn.Module:
    """A model of the scenario; another seed gives other weights."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = scenario.model()
    model.norm.eval()  # beside modules in train mode: the flags differ
    return model


def answer(scenario: Scenario, seed: int) -> np.ndarray[Any, Any]:
    """What eager torch computes."""
    model = Plain() if scenario.is_refused else scenario.model()
    model.load_state_dict(make_model(scenario, seed).state_dict())
    with torch.no_grad():
        return model.eval()(PICTURE).numpy()


def run_file(path: Path) -> np.ndarray[Any, Any]:
    """What the file computes, after its preprocessing where there is one."""
    picture = PICTURE.numpy()
    stage = path.with_name(f"{path.stem}.preprocess.onnx")
    if stage.exists():
        before = onnxruntime.InferenceSession(stage)
        picture = before.run(None, {before.get_inputs()[0].name: picture})[0]
    session = onnxruntime.InferenceSession(path)
    result: np.ndarray[Any, Any] = session.run(None, {session.get_inputs()[0].name: picture})[0]
    return result


def judge_file(path: Path, answers: dict[str, np.ndarray[Any, Any]]) -> str:
    """Whose answer the file gives; "broken" where it is nobody's."""
    try:
        found = run_file(path)
    except Exception as error:
        return f"broken: {str(error).splitlines()[0][:120]}"
    for name, wanted in answers.items():
        if found.shape == wanted.shape and np.allclose(found, wanted, rtol=1e-3, atol=1e-4):
            return name
    return "broken: computes what neither model computes"


# What must be as it was


_OWNERS = {
    "torch": torch,
    "Tensor": Tensor,
    "TensorBase": Tensor.__base__,
    "F": F,
    "linalg": torch.linalg,
    "fft": torch.fft,
    "special": torch.special,
    "Module": nn.Module,
    "jit": torch.jit,
    "onnx": torch.onnx,
    "operator": operator,
    "math": math,
    "builtins": builtins,
    "Function": torch.autograd.Function,
    "copy": copy,
    "numpy": np,
}
_UNSTABLE = {"_", "__warningregistry__"}


def functions() -> dict[str, int]:
    """Identities of torch's, Python's and numpy's functions."""
    return {
        f"{owner}.{name}": id(value)
        for owner, space in _OWNERS.items()
        for name, value in list(vars(space).items())
        if name not in _UNSTABLE and (callable(value) or isinstance(value, (property, staticmethod, classmethod)))
    }


def surroundings() -> dict[str, Any]:
    """Everything of the process that an export could disturb, by name."""
    registry = internals.symbolic_registry()
    overrides = {n: dict(g._functions._overrides) for n, g in registry._registry.items() if g._functions._overrides}
    loggers = {n: x for n, x in logging.Logger.manager.loggerDict.items() if isinstance(x, logging.Logger)}
    return {
        "symbolic registry": overrides,
        "warnings": list(warnings.filters),
        "environment": dict(os.environ),
        "default dtype": torch.get_default_dtype(),
        "gradients": torch.is_grad_enabled(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "fast path": torch.backends.mha.get_fastpath_enabled(),
        "in export": torch.onnx.is_in_onnx_export(),
        "tracing": torch.jit.is_tracing(),
        "torch's random state": torch.get_rng_state().numpy().tobytes(),
        "numpy's random state": repr(np.random.get_state()),
        "Python's random state": random.getstate(),
        "streams": [_stream(number) for number in (0, 1, 2)],
        "sys streams": (sys.stdin, sys.stdout, sys.stderr),
        "logging levels": {n: (x.level, x.disabled, list(x.handlers)) for n, x in loggers.items() if x.level},
        "logging": (logging.root.level, logging.root.manager.disable),
        "folder": os.getcwd(),
        "path": list(sys.path),
        "hooks": (sys.excepthook, sys.displayhook, sys.getprofile()),
        "recursion limit": sys.getrecursionlimit(),
        "collector": (gc.isenabled(), gc.get_threshold()),
        "modes": (len(torch.overrides._get_current_function_mode_stack()), torch._C._len_torch_dispatch_stack()),
        "dispatch keys": (
            torch._C._dispatch_tls_local_exclude_set().raw_repr(),
            torch._C._dispatch_tls_local_include_set().raw_repr(),
        ),
        "distributions": torch.distributions.Distribution._validate_args,
        "torch functions": torch._C._get_torch_function_state(),
        "threads": threading.active_count(),
        "signals": signal.getsignal(signal.SIGINT),
        "temporary files": sorted(os.listdir(tempfile.gettempdir())),
    }


def _stream(number: int) -> Any:
    try:
        status = os.fstat(number)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mode


def fingerprint(model: nn.Module) -> dict[str, Any]:
    """Everything of a model that an export could disturb, by name."""
    state = model.state_dict(keep_vars=True)
    return {
        "values": {k: hashlib.sha256(v.detach().numpy().tobytes()).hexdigest() for k, v in state.items()},
        "tensors": {k: (id(v), v.data_ptr(), v._version, v.requires_grad, v.grad) for k, v in state.items()},
        "training flags": {name: m.training for name, m in model.named_modules()},
        "hooks": {name: (list(m._forward_hooks), list(m._forward_pre_hooks)) for name, m in model.named_modules()},
        "attributes": {name: (sorted(vars(m)), type(m), id(m)) for name, m in model.named_modules()},
        "classes": {c.__name__: sorted((n, id(v)) for n, v in vars(c).items()) for c in type(model).__mro__[:-1]},
    }


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """The names of what is not as it was; of functions also which."""
    names = [name for name in before if before[name] != after.get(name)]
    return sorted([*names, *(f"{name} is new" for name in after if name not in before)])


# Faults


@dataclass(frozen=True)
class Place:
    """A line of the package that an export runs."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file.removeprefix(str(ROOT) + os.sep)}:{self.line}"


class Tracer:
    """Calls something at every call and line of the package's own files.

    Args:
        visit: What to call; an exception that it raises goes into the traced code.
    """

    def __init__(self, visit: Callable[[Place], None], files: tuple[str, ...] = PACKAGES) -> None:
        self._visit, self._files = visit, files

    @contextmanager
    def active(self) -> Iterator[None]:
        before = sys.gettrace()
        sys.settrace(self._call)
        try:
            yield
        finally:
            sys.settrace(before)

    def _call(self, frame: FrameType, event: str, argument: Any) -> Any:
        if not frame.f_code.co_filename.startswith(self._files):
            return None
        return self._line(frame, event, argument)

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event in ("call", "line"):
            self._visit(Place(frame.f_code.co_filename, frame.f_lineno))
        return self._line


@dataclass(frozen=True)
class Outcome:
    """What came of one fault."""

    scenario: str
    exception: str
    place: str
    raised: str
    """The exception that reached the caller; empty where the export succeeded all the same."""
    file: str
    """"old", "new" or what is wrong with it."""
    problems: tuple[str, ...]
    """What is not as it was."""

    @property
    def is_fine(self) -> bool:
        return self.file in ("old", "new") and not self.problems

    @property
    def is_swallowed(self) -> bool:
        """Whether the package took the exception for something else, and exported all the same."""
        return not self.raised


NOT_REACHED = "the place was not reached"


class Injector:
    """Exports one scenario again and again over a fresh copy of its old files.

    Args:
        name: Of the scenario.
        folder: An empty folder.
    """

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.scenario = name, SCENARIOS[name]
        self._old, self._work = folder / "old", folder / "work"
        self._old.mkdir()
        old_model = Scenario(Plain) if self.scenario.is_refused else self.scenario
        options = {"exporter": "torchscript"} if self.scenario.is_refused else self.scenario.options
        export_compat(make_model(old_model, 1), PICTURE, self._old / "m.onnx", **options)
        self.model = make_model(self.scenario, 2)
        self.answers = {"old": answer(self.scenario, 1)}
        if not self.scenario.is_refused:
            self.answers["new"] = answer(self.scenario, 2)
        self.places: dict[Place, int] = Counter()
        for _ in range(2):  # the second run finds everything imported
            self.places = self._record()

    def _record(self) -> dict[Place, int]:
        found: Counter[Place] = Counter()

        def count(place: Place) -> None:
            found[place] += 1

        self._fresh_files()
        with Tracer(count).active():
            self._export()
        return found

    def _fresh_files(self) -> None:
        shutil.rmtree(self._work, ignore_errors=True)
        shutil.copytree(self._old, self._work)

    def _export(self) -> str:
        try:
            export_compat(self.model, PICTURE, self._work / "m.onnx", **self.scenario.options)
        except BaseException as error:  # also the interrupt that was injected
            return type(error).__name__
        return ""

    def inject(self, exception: str, seed: int) -> Outcome:
        """Exports, with an exception at a place that the seed chooses: any line that runs, at any of its turns."""
        generator = random.Random(f"{self.name} {exception} {seed}")
        while True:
            place = generator.choice(sorted(self.places, key=str))
            outcome = self.inject_at(exception, place, generator.randint(1, self.places[place]))
            if outcome.problems != (NOT_REACHED,):  # how often a line runs is a matter of time, too
                return outcome

    def inject_at(self, exception: str, place: Place, turn: int) -> Outcome:
        """Exports, with an exception when the place is reached for the n-th time."""
        left = [turn]

        def visit(here: Place) -> None:
            if here == place:
                left[0] -= 1
                if left[0] == 0:
                    raise EXCEPTIONS[exception](MESSAGE)

        self._fresh_files()
        before, functions_before, model_before = surroundings(), functions(), fingerprint(self.model)
        with Tracer(visit).active():
            raised = self._export()
        problems = self._problems(before, functions_before, model_before)
        if left[0] > 0:
            problems.append(NOT_REACHED)
        file = judge_file(self._work / "m.onnx", self.answers)
        if not raised and file != "new":
            problems.append("success without the new file")
        return Outcome(self.name, exception, f"{place} turn {turn}", raised, file, tuple(problems))

    def export_whole(self) -> list[str]:
        """What an export without a fault leaves changed: no fault can be blamed for it."""
        self._fresh_files()
        before, functions_before, model_before = surroundings(), functions(), fingerprint(self.model)
        self._export()
        return self._problems(before, functions_before, model_before)

    def _problems(self, *before: dict[str, Any]) -> list[str]:
        gc.collect()
        now, functions_now, model_now = surroundings(), functions(), fingerprint(self.model)
        return [
            *differences(before[0], now),
            *differences(before[1], functions_now),
            *(f"the model's {what}" for what in differences(before[2], model_now)),
            *self._leftovers(),
        ]

    def _leftovers(self) -> list[str]:
        found = {path.name for path in self._work.iterdir()}
        weights = {name for name in found if name.endswith(".data")}
        wanted = {path.name for path in self._old.iterdir()} - {"m.onnx.data"}
        extra = sorted(found - weights - wanted) + sorted(weights)[1:]
        return [f"{name} is left" for name in extra]


# Kills


@dataclass(frozen=True)
class Kill:
    """What came of one killed process."""

    point: str
    file: str
    later: str
    """Whose answer the file gives after one more export."""
    left: tuple[str, ...]
    """The files in the folder then."""

    @property
    def is_fine(self) -> bool:
        return self.file in ("old", "new") and self.later == "later" and len(self.left) == 2


_CALLS = ("replace", "rename", "unlink", "remove", "rmdir", "mkdir", "link", "chmod")


class Killer:
    """Kills a child process in the middle of an export with external data, before or after a call of the system's.

    Args:
        folder: An empty folder.
    """

    def __init__(self, folder: Path) -> None:
        self._work = folder / "killed"
        self.scenario = SCENARIOS["external"]
        self.models = {name: make_model(self.scenario, seed) for seed, name in enumerate(("old", "new", "later"), 1)}
        self.answers = {name: answer(self.scenario, seed) for seed, name in enumerate(("old", "new", "later"), 1)}
        self._start(0)
        self.points = len(self._calls_of(lambda: self._export("new")))

    def _export(self, name: str) -> None:
        export_compat(self.models[name], PICTURE, self._work / "m.onnx", verify=False, **self.scenario.options)

    def _start(self, exports: int) -> None:
        """The old pair, after some exports: every second one finds the plain name taken."""
        shutil.rmtree(self._work, ignore_errors=True)
        self._work.mkdir()
        for _ in range(exports + 1):
            self._export("old")

    def _calls_of(self, work: Callable[[], None]) -> list[str]:
        calls: list[str] = []
        with _watched_calls(calls.append, lambda name: None):
            work()
        return calls

    def kill(self, number: int) -> Kill:
        """Kills at one of twice as many points as there are calls, then exports once more."""
        number %= 4 * self.points
        exports, rest = divmod(number, 2 * self.points)
        call, after = divmod(rest, 2)
        self._start(exports)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python warns of forks beside threads; the child uses none
            child = os.fork()
        if child == 0:
            self._die_at(call, bool(after))
        _, status = os.waitpid(child, 0)
        point = f"{'after' if after else 'before'} call {call}, {exports + 1} exports before"
        if not os.WIFSIGNALED(status):
            point += " (it was not killed)"
        file = judge_file(self._work / "m.onnx", self.answers)
        self._export("later")
        later = judge_file(self._work / "m.onnx", self.answers)
        return Kill(point, file, later, tuple(sorted(path.name for path in self._work.iterdir())))

    def _die_at(self, call: int, after: bool) -> None:
        left = [call]

        def count(name: str) -> None:
            if left[0] == 0 and not after:
                os.kill(os.getpid(), signal.SIGKILL)
            left[0] -= 1

        def counted(name: str) -> None:
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)

        try:
            with _watched_calls(count, counted if after else lambda name: None):
                self._export("new")
        finally:
            os._exit(0)


@contextmanager
def _watched_calls(before: Callable[[str], None], after: Callable[[str], None]) -> Iterator[None]:
    originals = {name: getattr(os, name) for name in _CALLS}

    def watch(name: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            before(name)
            result = originals[name](*args, **kwargs)
            after(name)
            return result

        return call

    for name in _CALLS:
        setattr(os, name, watch(name))
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(os, name, original)
