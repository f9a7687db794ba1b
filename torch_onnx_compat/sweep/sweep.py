"""sweep(): every model on an executor, its row into a file as it comes; what the file holds is not done again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import BrokenExecutor, Executor, ThreadPoolExecutor, as_completed
from dataclasses import dataclass

from torch_onnx_compat.errors import CompatError, unknown_name
from torch_onnx_compat.sweep.client import run_job, stop_servers
from torch_onnx_compat.sweep.job import BY, By, Job, Row
from torch_onnx_compat.sweep.log import Log, read_rows
from torch_onnx_compat.sweep.versions import code_for, versions_for
from torch_onnx_compat.targets import load_target
from torch_onnx_compat.zoo.sample import Size


@dataclass(frozen=True)
class Progress:
    """How far a sweep has come: what a caller is told after every row, and once before the first."""

    total: int
    cached: int
    row: Row | None = None


def sweep(
    specs: Iterable[str | tuple[str, Size | None]],
    output: str | os.PathLike[str],
    *,
    target: str | os.PathLike[str] = "onnxruntime",
    by: Sequence[By] = ("ours",),
    size: Size | None = None,
    opset: int | None = None,
    seconds: float = 300.0,
    memory: int = 8000,
    executor: Executor | None = None,
    jobs: int = 1,
    progress: Callable[[Progress], None] | None = None,
) -> list[Row]:
    """Exports and judges many models, each in a process of its own; a crash, a hang or a lack of memory is a row.

    Args:
        specs: Models as `zoo.load` takes them, or pairs of one and the size of its pictures.
        output: File of JSON lines that rows are appended to as they come. Rows that it holds for the same models,
            options, versions and code are kept and not measured again, so a killed sweep goes on where it was.
        target: Inference engine, or the path of a profile; where it is installed, files are run in it too.
        by: Who exports each model: ``"ours"``, ``"torch"`` (torch.onnx.export's defaults) or ``"torchscript"``.
        size: Height and width of the example pictures where the spec gives none, in pixels; the zoos' own by default.
        opset: ONNX opset; the target's preferred one, or for stock torch its default, if None.
        seconds: How long one process may take.
        memory: How much resident memory one process may have, in MB.
        executor: Where jobs run; its workers must import torch_onnx_compat and, on other machines, see the same files.
            Threads of this process by default, each of which waits for a process.
        jobs: How many at a time, without an executor.
        progress: Told how far the sweep has come.

    Returns:
        The rows of these models, in their order; for each, in the order of `by`.

    Raises:
        CompatError: A zoo, the target or the file is not there, or the executor broke.
    """
    load_target(target)
    wanted = jobs_of(specs, target=os.fspath(target), by=by, size=size, opset=opset, seconds=seconds, memory=memory)
    with Log(output) as log:
        rows = {row.key: row for row in read_rows(output)}
        done = {job.key for job in wanted if job.key in rows and job.is_settled(rows[job.key])}
        pending = [job for job in wanted if job.key not in done]
        tell = progress or (lambda _: None)
        tell(Progress(len(wanted), len(done)))
        for row in _run(pending, executor, jobs):
            log.append(row)
            rows[row.key] = row
            tell(Progress(len(wanted), len(done), row))
    return [rows[job.key] for job in wanted]


def jobs_of(
    specs: Iterable[str | tuple[str, Size | None]],
    *,
    target: str = "onnxruntime",
    by: Sequence[By] = ("ours",),
    size: Size | None = None,
    opset: int | None = None,
    seconds: float = 300.0,
    memory: int = 8000,
) -> list[Job]:
    """The jobs of a sweep, each once. Arguments as `sweep`'s."""
    for one in by:
        if one not in BY:
            raise unknown_name("exporter of a sweep", one, BY)
    pairs = [(spec, size) if isinstance(spec, str) else (spec[0], spec[1] or size) for spec in specs]
    found: dict[str, Job] = {}
    for spec, of in pairs:
        for one in by:
            versions = versions_for(spec.rpartition(":")[0])
            job = Job(spec, one, of, target, opset, versions, code_for(spec, one), seconds, memory)
            found.setdefault(job.key, job)
    return list(found.values())


def _run(pending: Sequence[Job], executor: Executor | None, jobs: int) -> Iterable[Row]:
    """Rows as they come. Whatever ends the loop early, an interrupt too, ends what runs."""
    if not pending:
        return
    pool = executor or ThreadPoolExecutor(jobs)
    futures = [pool.submit(run_job, job) for job in pending]
    try:
        for future in as_completed(futures):
            yield future.result()
    except BrokenExecutor as error:
        raise CompatError(f"the executor broke: {error}; the rows so far are kept, call again to go on.") from error
    finally:
        for future in futures:
            future.cancel()
        if executor is None:
            stop_servers()
            pool.shutdown()
