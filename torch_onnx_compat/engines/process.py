"""An engine's process: takes files and feeds, returns outputs, and survives crashes and hangs of the engine."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from torch_onnx_compat.engines.engine import Engine
from torch_onnx_compat.engines.ranges import Ranges, ranges_of_feeds
from torch_onnx_compat.errors import CompatError

Array = npt.NDArray[Any]
_WORKER = Path(__file__).parent / "worker.py"
_START = 120.0
"""Seconds that an engine's process may take to start."""
_MOST_NUMBERS = 64
"""Numbers of an input that may decide shapes; engines that build files take no more of them."""
_THREADS = ("OMP_NUM_THREADS", "TORCH_ONNX_COMPAT_THREADS")
"""Environment variables that say on how many threads an engine runs; adapters read the second."""
_FILLED = {"MALLOC_PERTURB_": "192", "MallocPreScribble": "1", "MallocScribble": "1"}
"""Settings that fill memory: glibc writes the float 0.75 when it is allocated and -6 when it is freed, macOS writes
bytes of its own. An engine that reads uninitialised memory is then wrong every time, not now and then."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of one run.

    Attributes:
        status: ran, refused (the engine raised an error) or crashed (its process died, or took too long). Of an engine
            that only builds files here: built, misread where what it parsed cannot be computed, or unknown where it
            asks for a device that is not here.
        outputs: The outputs, in the order asked for. Where the file was built, those of what was parsed, in float64;
            none where it is not known what the parsed network computes.
        error: The engine's error; where the file was built, why there are no outputs.
        loading: Processor seconds that it took to load the file, or to build it.
        memory: Bytes that the engine's process has held at most so far; 0 where the system does not say.
        size: Bytes of the engine that was built of the file.
        first: The outputs of the first of the two runs that a file has; none where it was not run.
    """

    status: str
    outputs: tuple[Array, ...] = ()
    error: str = ""
    loading: float = 0.0
    memory: int = 0
    size: int = 0
    first: tuple[Array, ...] = ()


@dataclass(frozen=True)
class Timing:
    """How long runs of a file took.

    Attributes:
        seconds: Processor seconds of each.
        wall: Wall-clock seconds of each.
        memory: Bytes that the engine's process has held at most so far; 0 where the system does not say.
    """

    seconds: tuple[float, ...]
    wall: tuple[float, ...]
    memory: int


class EngineProcess:
    """Runs files in an engine, one after the other; a context manager.

    Args:
        engine: The engine.
        limit: Seconds that one file may take.
        fills: Whether memory is filled with odd numbers. This exposes an engine that reads uninitialised memory, and
            takes time.
        threads: On how many threads the engine runs, where its adapter can say so.

    Raises:
        CompatError: No interpreter has the engine.
    """

    def __init__(self, engine: Engine, limit: float = 60.0, *, fills: bool = True, threads: int = 1) -> None:
        interpreter = engine.interpreter()
        if interpreter is None:
            raise CompatError(
                f"engine {engine.name!r} is not installed; `torch-onnx-compat measure {engine.name} --install` "
                f"makes an environment for it, or set {engine.variable} to an interpreter that has it."
            )
        self.engine = engine
        self._interpreter = interpreter
        self._limit = limit
        self._environment = {**os.environ, **dict.fromkeys(_THREADS, str(threads)), **(_FILLED if fills else {})}
        self._process: subprocess.Popen[str] | None = None
        self._folder = tempfile.TemporaryDirectory()
        self._built: tuple[Any, Any, Outcome] = (None, None, Outcome("crashed"))
        """What identifies the file that was built last, its parsed network, and the outcome of the build."""
        self.version: str = ""

    def __enter__(self) -> EngineProcess:
        try:
            self._start()
        except CompatError:
            self._folder.cleanup()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop()
        self._folder.cleanup()

    def run(
        self,
        model: str | os.PathLike[str] | bytes,
        feeds: Mapping[str, Array],
        outputs: Sequence[str],
        ranges: Ranges | None = None,
    ) -> Outcome:
        """Runs one file; where the engine only builds files here, builds it and computes what was parsed.

        Args:
            model: A path, or a serialised model.
            feeds: Inputs by name.
            outputs: Names of the wanted outputs.
            ranges: The shapes that an engine which builds files builds it for; of other inputs those of the feeds.
        """
        folder = Path(self._folder.name)
        if isinstance(model, bytes):
            (folder / "model.onnx").write_bytes(model)
            model = folder / "model.onnx"
        if self.engine.builds:
            held = {name: shapes for name, shapes in (ranges or {}).items() if name in feeds}
            return self._build(Path(model).absolute(), feeds, outputs, {**ranges_of_feeds(feeds), **held})
        given, into = folder / "feeds.npz", folder / "outputs.npz"
        np.savez(given, **dict(feeds))  # type: ignore[arg-type]
        job = {"model": os.path.abspath(model), "feeds": str(given), "outputs": list(outputs), "into": str(into)}
        answer = self._ask(job)
        if answer is None:
            return Outcome("crashed", error="its process died, or took too long")
        if not answer["ok"]:
            return Outcome("refused", error=answer["error"])
        with np.load(into) as archive:
            found, first = (
                tuple(archive[f"{prefix}_{index}"] for index in range(answer["outputs"])) for prefix in ("arr", "first")
            )
        return Outcome("ran", found, loading=answer["loading"], memory=answer["memory"], first=first)

    def _build(self, model: Path, feeds: Mapping[str, Array], outputs: Sequence[str], ranges: Ranges) -> Outcome:
        from torch_onnx_compat.engines import tensorrt  # not at the top: it imports torch, which no other engine needs

        values = {
            n: a.reshape(-1).tolist() for n, a in feeds.items() if a.dtype.kind in "iu" and a.size <= _MOST_NUMBERS
        }
        key = (model, model.stat().st_mtime_ns, model.stat().st_size, repr((ranges, values)))
        if key != self._built[0]:
            into = Path(self._folder.name) / "network.npz"
            answer = self._ask({"model": str(model), "ranges": ranges, "values": values, "into": str(into)})
            if answer is None:
                return Outcome("crashed", error="its process died, or took too long")
            if not answer["ok"]:
                status = "unknown" if "no graphics card: " in answer["error"] else "refused"
                return Outcome(status, error=answer["error"])
            done = Outcome("built", loading=answer["loading"], memory=answer["memory"], size=answer["size"])
            self._built = (key, tensorrt.read_network(into), done)
        _, network, done = self._built
        try:
            found = dict(zip(network.outputs, tensorrt.run_network(network, feeds), strict=True))
        except tensorrt.NotKnown as error:
            return replace(done, error=str(error))
        except tensorrt.NetworkFault as error:
            return Outcome("misread", error=str(error))
        return replace(done, outputs=tuple(found[name] for name in outputs))

    def time(self, times: int) -> tuple[float, ...]:
        """Processor seconds of each further run of the last file, which stays loaded.

        Raises:
            CompatError: No file ran last, or the engine failed now.
        """
        return self.measure(times).seconds

    def measure(self, times: int) -> Timing:
        """Times further runs of the last file, which stays loaded.

        Raises:
            CompatError: No file ran last, or the engine failed now.
        """
        answer = self._ask({"times": times})
        if answer is None or not answer["ok"]:
            raise CompatError(f"engine {self.engine.name!r}: no file to time: the last one did not run.")
        return Timing(tuple(answer["seconds"]), tuple(answer["wall"]), answer["memory"])

    def restart(self) -> None:
        """Ends the process; the next run starts a new one, whose memory earlier runs have not touched."""
        self._stop()

    def _ask(self, job: dict[str, Any]) -> dict[str, Any] | None:
        if self._process is None:
            self._start()
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(job) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            self._stop()
            return None
        return self._read(self._limit)

    def _read(self, limit: float) -> dict[str, Any] | None:
        assert self._process is not None
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], limit)
        line = self._process.stdout.readline() if ready else ""
        if not line:
            self._stop()
            return None
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _start(self) -> None:
        command = [self._interpreter, str(_WORKER), str(self.engine.path), self.engine.variant]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            bufsize=1,
            cwd=self._folder.name,
            env=self._environment,
            start_new_session=True,  # some engines start programs; killing the session ends these too
        )
        hello = self._read(_START)
        if hello is None:
            raise CompatError(f"engine {self.engine.name!r} does not start under {self._interpreter}.")
        self.version = hello["version"]

    def _stop(self) -> None:
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):  # a crash left data unread
                    stream.close()
        self._process = None
