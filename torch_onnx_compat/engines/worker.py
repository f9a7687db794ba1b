"""Runs ONNX files in one engine; started as a script by an interpreter that has numpy and the engine, nothing else.

Usage: worker.py ADAPTER VARIANT. Each line of standard input is a JSON job: {"model", "feeds", "outputs", "into"} runs
a file, where feeds and into are .npz files; {"model", "ranges", "values", "into"} builds one; {"times"} runs the last
file as often again. Each line of standard output is a JSON answer {"ok", "error", "seconds", "wall", "loading", "size",
"memory"}: processor and wall-clock seconds of each further run, or processor seconds of loading or building a file and
bytes of what was built, and the process's largest memory in bytes so far. The first line, written unasked, holds
{"version"}.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

sys.path[:] = [p for p in sys.path if os.path.abspath(p or ".") != os.path.dirname(os.path.abspath(__file__))]

import numpy as np  # noqa: E402 - adapters in this directory have the names of their engines' modules


def main() -> None:
    """Answers jobs until standard input ends."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # engines print to standard output, which holds the answers
    spec = importlib.util.spec_from_file_location("adapter", sys.argv[1])
    assert spec is not None
    assert spec.loader is not None
    adapter = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(adapter)
    print(json.dumps({"version": adapter.version()}), file=answers)
    last: list[_Loaded] = []
    for line in sys.stdin:
        print(json.dumps(_answer(adapter, json.loads(line), last)), file=answers)


@dataclass(frozen=True)
class _Loaded:
    """The file that ran last: what it was loaded for, in how many seconds, and its last run."""

    key: Any
    seconds: float
    run: Callable[[dict[str, Any]], Any]
    feeds: dict[str, Any]


def _answer(adapter: Any, job: dict[str, Any], last: list[_Loaded]) -> dict[str, Any]:
    try:
        found = _time_runs(last[0], job["times"]) if "times" in job else _run_job(adapter, job, last)
    except BaseException as error:  # some engines raise outside Exception
        if isinstance(error, KeyboardInterrupt):
            raise
        return {"ok": False, "error": " ".join(f"{type(error).__name__}: {error}".split())[:400], "seconds": []}
    return {"ok": True, "error": "", "seconds": [], **found, "memory": _memory()}


def _memory() -> int:
    """Bytes that the process has held at most; 0 where the system does not say."""
    with contextlib.suppress(OSError), open("/proc/self/status", encoding="ascii") as file:
        # Linux's getrusage begins with what the process that started this one had held.
        return next(1024 * int(line.split()[1]) for line in file if line.startswith("VmHWM:"))
    try:
        import resource
    except ImportError:  # Windows
        return 0
    size: int = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size if sys.platform == "darwin" else 1024 * size


def _run_job(adapter: Any, job: dict[str, Any], last: list[_Loaded]) -> dict[str, Any]:
    if "ranges" in job:
        start = time.process_time()
        size = adapter.build(job["model"], job["ranges"], job["values"], job["into"], sys.argv[2])
        return {"loading": time.process_time() - start, "size": size}
    with np.load(job["feeds"]) as archive:
        feeds = {name: archive[name] for name in archive.files}
    known = last[0] if last else None
    last.clear()  # frees its memory before the next file is loaded; after a failure nothing is loaded
    key = _key(job, feeds)
    if known is None or known.key != key:
        known = None
        start = time.process_time()
        run = adapter.load(job["model"], feeds, job["outputs"], sys.argv[2])
        known = _Loaded(key, time.process_time() - start, run, feeds)
    # A first run may be right by luck, as uninitialised memory is often zero; and wrong alone, as it makes room.
    first, second = (_arrays(known.run(feeds)) for _ in range(2))
    np.savez(job["into"], *second, **{f"first_{i}": array for i, array in enumerate(first)})
    last.append(replace(known, feeds=feeds))
    return {"loading": known.seconds, "outputs": len(second)}


def _arrays(outputs: Any) -> list[Any]:
    """Outputs as arrays of their own: some engines write the next run's into the same memory."""
    arrays: list[Any] = [np.array(array) for array in outputs]
    if any(array.dtype == object for array in arrays):
        raise TypeError("an output is no plain array")
    return arrays


def _key(job: dict[str, Any], feeds: dict[str, Any]) -> Any:
    """What a file is loaded for: itself, as it is on the disk now, the outputs, and shapes and types of the inputs."""
    file = os.stat(job["model"])
    kinds = [(name, array.shape, str(array.dtype)) for name, array in feeds.items()]
    return job["model"], file.st_ino, file.st_mtime_ns, file.st_size, job["outputs"], kinds


def _time_runs(last: _Loaded, times: int) -> dict[str, Any]:
    seconds, wall = [], []
    for _ in range(times):
        begin, start = time.perf_counter(), time.process_time()  # the wall clock counts other programs too
        last.run(last.feeds)
        seconds.append(time.process_time() - start)
        wall.append(time.perf_counter() - begin)
    return {"seconds": seconds, "wall": wall}


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
