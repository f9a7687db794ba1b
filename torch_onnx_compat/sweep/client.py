"""Gives jobs to servers: as many as there are threads that ask at a time, started when needed and used again."""

from __future__ import annotations

import datetime
import json
import os
import select
import subprocess
import sys
import threading
from typing import Any

from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.sweep.job import Job, Row, row_of
from torch_onnx_compat.sweep.server import as_line

_START = 300.0
"""Seconds that a server may take to import everything; a shared machine can be slow."""
_GRACE = 60.0
"""Seconds that a server has beside the job's own: to import its zoo, and to clean up."""
_PATIENCE = 5.0
"""Seconds that a server gets to end by itself."""
_COMMAND = "from torch_onnx_compat.sweep.server import main; main()"

_lock = threading.Lock()
_idle: list[_Server] = []
_all: set[_Server] = set()


def run_job(job: Job) -> Row:
    """Runs a job in a process of its own; blocks, and never raises for what the model does.

    Raises:
        CompatError: No server starts here.
    """
    server = _take()
    answer = server.ask(job)
    if answer is None:
        server.stop()
        with _lock:
            _all.discard(server)
        answer = {"verdict": "crashed", "reason": "the process that should run it died, or did not answer"}
    else:
        with _lock:
            _idle.append(server)
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    return row_of(job, date=today, **answer)


def stop_servers() -> None:
    """Ends the servers of this process and what they run."""
    with _lock:
        servers = list(_all)
        _all.clear()
        _idle.clear()
    for server in servers:
        server.stop()


def _take() -> _Server:
    with _lock:
        if _idle:
            return _idle.pop()
    server = _Server()
    with _lock:
        _all.add(server)
    return server


def _forget() -> None:
    """A forked process leaves its parent's servers alone."""
    global _lock
    _lock = threading.Lock()
    _idle.clear()
    _all.clear()


class _Server:
    def __init__(self) -> None:
        if not hasattr(os, "fork"):
            raise CompatError("a sweep needs os.fork, which this system lacks; use Linux, macOS or WSL.")
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        self._process = subprocess.Popen(
            [sys.executable, "-c", _COMMAND],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env={**os.environ, **threads, "PYTHONPATH": path},
        )
        if self._line(_START) != b"ready":
            self.stop()
            raise CompatError(f"a sweep's server does not start under {sys.executable}; try `python -c {_COMMAND!r}`.")

    def ask(self, job: Job) -> dict[str, Any] | None:
        """What became of a job; None where the server is lost."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(as_line(job))
        except OSError:
            return None
        line = self._line(job.seconds + _GRACE)
        return dict(json.loads(line)) if line else None

    def _line(self, limit: float) -> bytes:
        """The next line without its end; empty where there is none."""
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], limit)
        return self._process.stdout.readline().rstrip(b"\n") if ready else b""

    def stop(self) -> None:
        """Ends the server; what it runs ends with it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
