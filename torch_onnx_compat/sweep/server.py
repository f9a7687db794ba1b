"""A process that has imported torch and runs every job in a fork of itself, with limits on time and memory.

It never runs an operator itself, so it has no thread that a fork would lose, and a job costs a few milliseconds beside
itself instead of the seconds that the imports take. It reads a job a line from standard input and answers each with a
line, and it ends with whoever started it.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import faulthandler
import gc
import json
import os
import re
import select
import signal
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import Any

POLL = 0.02
"""Seconds between looks at the memory of a job's process."""
_PRELOAD = ("onnxscript", "torch.export", "torch_onnx_compat.export", "torch_onnx_compat.sweep.measure")
_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Serves until standard input ends."""
    answers = os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 1)  # models print
    os.dup2(nowhere, 2)
    for name in _PRELOAD:
        import_module(name)
    import_module("torch_onnx_compat.catalogue.catalogue").catalogue()
    gc.freeze()  # a collection in a fork would copy every page it looks at
    from torch_onnx_compat.sweep.job import Job

    os.write(answers, b"ready\n")
    commands = os.fdopen(os.dup(0), "rb", buffering=0)
    parent = os.getppid()
    while True:
        while not select.select([0], [], [], 1.0)[0]:
            if os.getppid() != parent:  # another of its forks may hold our input open
                return
        line = commands.readline()
        if not line:
            return
        values = json.loads(line)
        os.chdir(values.pop("folder"))
        size = values.pop("size")
        os.write(answers, json.dumps(_run(Job(**values, size=size and tuple(size)))).encode() + b"\n")


def _run(job: Any) -> dict[str, Any]:
    """Runs a job in a fork, and says what became of it."""
    family = _family(job.spec)
    with tempfile.TemporaryDirectory(prefix="sweep-", ignore_cleanup_errors=True) as folder:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            _be_child(job, Path(folder), writer)
        os.close(writer)
        _own_group(child)
        found, last, broken = _watch(job, child, reader)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # engines it started
        _, status, usage = os.wait4(child, 0)
        os.close(reader)
        if not found:
            found = broken or {"verdict": "crashed", "reason": _death(status, Path(folder), last)}
    unit = 1024 if sys.platform != "darwin" else 1024 * 1024
    return {"family": family, "memory": usage.ru_maxrss // unit, **found}


def _family(spec: str) -> str:
    """The model's family; its zoo is imported on the way, once for all its models."""
    from torch_onnx_compat import zoo

    try:
        return zoo.family(spec)
    except Exception:  # told by the load in the fork
        return ""


def _watch(job: Any, child: int, reader: int) -> tuple[dict[str, Any], str, dict[str, Any]]:
    """Waits for the answer; gives it, the last step that was heard of, and the limit that was broken."""
    deadline, parent = time.monotonic() + job.seconds, os.getppid()
    text, last = b"", "load"
    while True:
        ready, _, _ = select.select([reader, 0], [], [], POLL)
        if 0 in ready or os.getppid() != parent:  # jobs come one by one, so what is ready is the end of the input
            os.killpg(child, signal.SIGKILL)
            os._exit(1)
        if reader in ready:
            part = os.read(reader, 65536)
            *lines, text = (text + part).split(b"\n")
            messages = [json.loads(line) for line in lines]
            answer = next((message for message in messages if isinstance(message, dict)), {})
            last = next((message for message in reversed(messages) if isinstance(message, str)), last)
            if answer or not part:
                return answer, last, {}
        broken = _broken(job, deadline, child, last)
        if broken:
            return {}, last, broken


def _broken(job: Any, deadline: float, child: int, last: str) -> dict[str, Any]:
    """The row's fields where a limit is broken."""
    if time.monotonic() > deadline:
        reason = f"more than {job.seconds:g} s, in step {last!r}"
        return {"verdict": "out of time", "reason": reason, "limit": job.seconds}
    if _resident(child) > job.memory:
        reason = f"more than {job.memory} MB, in step {last!r}"
        return {"verdict": "out of memory", "reason": reason, "limit": job.memory}
    return {}


def _resident(process: int) -> float:
    """Resident memory in MB; 0 where the system does not tell."""
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    except (OSError, IndexError):
        return 0.0


def _be_child(job: Any, folder: Path, writer: int) -> None:
    """Does the job in this fork and ends it."""
    server = os.getppid()
    _own_group(0)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != server:  # it ended before it could take this process along
        os._exit(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    faulthandler.enable(open(folder / "fault", "w"))  # noqa: SIM115 (open as long as the process)
    import torch

    from torch_onnx_compat.sweep.measure import measure, tidy

    def say(message: Any) -> None:
        os.write(writer, json.dumps(message).encode() + b"\n")

    try:
        if job.threads != torch.get_num_threads():
            torch.set_num_threads(job.threads)
        say(measure(job, folder, say))
    except BaseException as error:
        say({"verdict": "crashed", "reason": tidy(f"{type(error).__name__}: {error}")})
    os._exit(0)


def _own_group(process: int) -> None:
    """Puts a process into a group of its own, so that what it starts ends with it; both sides do, whoever is first."""
    with contextlib.suppress(OSError):
        os.setpgid(process, process)


def _death(status: int, folder: Path, step: str) -> str:
    """How a process died, and where it was."""
    code = os.waitstatus_to_exitcode(status)
    how = f"died of {signal.Signals(-code).name}" if code < 0 else f"ended with exit status {code}"
    try:
        text = (folder / "fault").read_text(errors="replace")
    except OSError:
        text = ""
    place = re.search(r'File "([^"]+)", line (\d+) in', text)
    where = f" (at {Path(place[1]).parent.name}/{Path(place[1]).name}:{place[2]})" if place else ""
    return f"the process {how} in step {step!r}{where}"


def as_line(job: Any) -> bytes:
    """A job as a server reads it."""
    return json.dumps({**dataclasses.asdict(job), "folder": os.getcwd()}).encode() + b"\n"
