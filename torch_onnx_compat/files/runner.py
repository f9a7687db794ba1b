"""The process that runs files while they are proven, as its owner sees it."""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from torch_onnx_compat.engines import Engine, EngineProcess
from torch_onnx_compat.errors import CompatError

Array = npt.NDArray[Any]
Value: TypeAlias = Any
"""What an output may be: an array, a list of arrays, or None for an optional one without a value."""
Judge = Literal["onnxruntime", "reference"]

_WORKER = Path(__file__).parent / "worker.py"
_SHARE = 0.75
"""Share of the machine's memory that a file may take when it runs."""
LIMIT = 300.0
"""Seconds that opening or running a file may take."""


class Refused(CompatError):
    """An engine does not open a file, or does not run it on these inputs.

    Attributes:
        is_crash: Whether the engine's process died of it.
    """

    def __init__(self, message: str, *, is_crash: bool = False) -> None:
        super().__init__(message)
        self.is_crash = is_crash


@dataclass(frozen=True)
class _Open:
    path: Path
    judge: Judge
    plain: bool


class Runner:
    """Opens files in onnxruntime, or in onnx's reference evaluator, and runs them; a context manager.

    The process that does it is started again after a crash. Files are opened there again when they are run next. Other
    engines have processes of their own, which live as long.

    Args:
        limit: Seconds that one answer may take.
        memory: Bytes that the process may have; by default three quarters of the machine's.
    """

    def __init__(self, limit: float = LIMIT, memory: int | None = None) -> None:
        self._limit = limit
        self._memory = _share_of_memory() if memory is None else memory
        self._process: subprocess.Popen[bytes] | None = None
        self._files: dict[str, _Open] = {}
        self._opened: set[str] = set()
        self._engines: dict[Engine, EngineProcess] = {}
        self._stack = contextlib.ExitStack()
        self.seconds = 0.0
        """Processor seconds of the last run."""
        self.opens_anew = False
        """Whether each run opens its file anew: some files change their own weights as they run."""

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop()
        self._engines.clear()
        self._stack.close()

    def engine(self, engine: Engine) -> EngineProcess:
        """The process of another engine, which is started at the first call.

        Raises:
            CompatError: The engine is not installed, or does not start.
        """
        if engine not in self._engines:
            self._engines[engine] = self._stack.enter_context(EngineProcess(engine, self._limit))
        return self._engines[engine]

    def open(self, key: str, path: Path, judge: Judge = "onnxruntime", *, plain: bool = False) -> None:
        """Opens a file.

        Args:
            key: How run() calls it.
            path: The file.
            judge: Who runs it.
            plain: Whether it is run node by node as it is written, without the engine's optimisations.

        Raises:
            Refused: It does not open.
        """
        self._files[key] = _Open(path.resolve(), judge, plain)
        self._opened.discard(key)
        self._ensure_open(key)

    def close(self, key: str) -> None:
        """Forgets a file."""
        self._files.pop(key, None)
        if key in self._opened:
            self._opened.discard(key)
            with contextlib.suppress(Refused):  # its process died, and with it the file
                self._ask({"do": "close", "key": key})

    def run(self, key: str, feeds: Mapping[str, Value], names: Sequence[str] | None = None) -> list[Value]:
        """Runs an open file.

        Args:
            key: The file.
            feeds: Its inputs by name.
            names: The outputs that are wanted; all by default.

        Raises:
            Refused: It does not run on these inputs.
        """
        if self.opens_anew:
            self._opened.discard(key)
        self._ensure_open(key)
        job = {"do": "run", "key": key, "feeds": dict(feeds), "names": None if names is None else list(names)}
        answer = self._ask(job)
        self.seconds = answer["seconds"]
        outputs: list[Value] = answer["outputs"]
        return outputs

    def _ensure_open(self, key: str) -> None:
        if key in self._opened and self._process is not None:
            return
        file = self._files[key]
        self._ask({"do": "open", "key": key, "path": str(file.path), "judge": file.judge, "plain": file.plain})
        self._opened.add(key)

    def _ask(self, job: dict[str, Any]) -> dict[str, Any]:
        process = self._process or self._start()
        data = pickle.dumps(job, protocol=5)
        try:
            assert process.stdin is not None
            process.stdin.write(struct.pack("<Q", len(data)))
            process.stdin.write(data)
            del data  # a second copy of large inputs
            process.stdin.flush()
            answer = self._receive(process)
        except (BrokenPipeError, EOFError):
            raise Refused(self._stop(), is_crash=True) from None
        except BaseException:  # an interrupt leaves an answer in the pipe, which the next question must not get
            self._stop()
            raise
        if answer["error"]:
            raise Refused(answer["error"])
        return answer

    def _receive(self, process: subprocess.Popen[bytes]) -> dict[str, Any]:
        end = time.monotonic() + self._limit
        (size,) = struct.unpack("<Q", self._read(process, 8, end))
        answer: dict[str, Any] = pickle.loads(self._read(process, size, end))
        return answer

    def _read(self, process: subprocess.Popen[bytes], count: int, end: float) -> bytearray:
        assert process.stdout is not None
        data = bytearray()
        while len(data) < count:
            ready, _, _ = select.select([process.stdout], [], [], max(end - time.monotonic(), 0))
            if not ready:
                self._stop()
                raise Refused(f"no answer within {self._limit:g} s", is_crash=True)
            part = os.read(process.stdout.fileno(), min(count - len(data), 2**20))
            if not part:
                raise EOFError
            data += part
        return data

    def _start(self) -> subprocess.Popen[bytes]:
        self._opened.clear()
        self._process = subprocess.Popen(
            [sys.executable, str(_WORKER), str(self._memory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        return self._process

    def _stop(self) -> str:
        """Ends the process; says in words how it ended."""
        process, self._process = self._process, None
        self._opened.clear()
        if process is None:
            return "the engine's process ended"
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.2)
        process.kill()
        code = process.wait()
        name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return f"the engine's process died ({name})"


def _share_of_memory() -> int:
    try:
        return int(_SHARE * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (ValueError, OSError, AttributeError):  # no such question on Windows
        return 0


def flatten(values: Sequence[Value]) -> list[Array | None]:
    """The arrays of some outputs, those of sequences one after the other."""
    flat: list[Array | None] = []
    for value in values:
        if isinstance(value, (list, tuple)):
            flat += flatten(value)
        else:
            flat.append(None if value is None else np.asarray(value))
    return flat
