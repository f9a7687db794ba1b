"""What is to be done with one model, and what came of it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.zoo.sample import Size

By = Literal["ours", "torch", "torchscript"]
"""Who exports: `export_compat`; torch.onnx.export with its defaults since torch 2.9; or through TorchScript."""
BY: tuple[By, ...] = get_args(By)

Verdict = Literal["verified", "wrong", "refused", "crashed", "out of time", "out of memory", "not built"]
"""verified: the file computes what the model computes. wrong: there is a file, and it does not. refused: there is none,
and the reason says why. crashed, out of time, out of memory: what became of the process. not built: the zoo failed."""
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


@dataclass(frozen=True)
class Job:
    """One model, and who exports it how. Plain values only: it travels to other processes and machines.

    Args:
        spec: As `zoo.load` takes it.
        by: Who exports it.
        size: Height and width of the example pictures, in pixels; the zoo's own by default.
        target: Inference engine, or the path of a profile.
        opset: As `export_compat` takes it; None is the target's preferred one, and for stock torch its own default.
        versions: What the row depends on besides, as ``torch 2.15.0, ...``.
        code: Fingerprint of the code that makes the row.
        seconds: How long the process may take.
        memory: How much resident memory the process may have, in MB.
        threads: torch's threads in the process.
    """

    spec: str
    by: By = "ours"
    size: Size | None = None
    target: str = "onnxruntime"
    opset: int | None = None
    versions: str = ""
    code: str = ""
    seconds: float = 300.0
    memory: int = 8000
    threads: int = 1

    @property
    def key(self) -> str:
        """What a cached row is found by: everything but the limits."""
        size = "x".join(map(str, self.size)) if self.size else ""
        return "|".join((self.spec, size, self.by, self.target, str(self.opset or ""), self.versions, self.code))

    @property
    def name(self) -> tuple[str, str, str, str]:
        """What the rows of two runs with different versions have in common."""
        return self.spec, "x".join(map(str, self.size or ())), self.by, self.target

    def is_settled(self, row: Row) -> bool:
        """Whether a cached row still says all: one that hit a limit does not when the limit was raised."""
        limits = {"out of time": self.seconds, "out of memory": self.memory}
        return limits.get(row.verdict, 0) <= row.limit


@dataclass(frozen=True)
class Row:
    """What came of one job.

    Attributes:
        spec: The job's.
        by: The job's.
        size: The job's, as ``224x224``; empty for the zoo's own.
        target: The job's.
        asked: The job's opset; 0 where none was asked for.
        family: What kind of model it is.
        verdict: One of `VERDICTS`.
        reason: Why it is not verified.
        exporter: The back end that made the file.
        opset: The file's.
        nodes: How many nodes the file holds, subgraphs and functions included.
        load_s: Seconds to build the model and its inputs.
        export_s: Seconds to export it, without verification.
        check_s: Seconds of verification.
        memory: Peak resident memory of the process, in MB.
        limit: The limit that was hit, in seconds or MB.
        versions: The job's.
        code: The job's.
        date: Day of the run, UTC.
    """

    spec: str
    by: By
    verdict: Verdict
    family: str = ""
    size: str = ""
    target: str = "onnxruntime"
    asked: int = 0
    reason: str = ""
    exporter: str = ""
    opset: int = 0
    nodes: int = 0
    load_s: float = 0.0
    export_s: float = 0.0
    check_s: float = 0.0
    memory: int = 0
    limit: float = 0.0
    versions: str = ""
    code: str = ""
    date: str = ""

    @property
    def key(self) -> str:
        """The job's key."""
        asked = str(self.asked or "")
        return "|".join((self.spec, self.size, self.by, self.target, asked, self.versions, self.code))

    @property
    def name(self) -> tuple[str, str, str, str]:
        """The job's name."""
        return self.spec, self.size, self.by, self.target

    @property
    def zoo(self) -> str:
        """Prefix of the spec."""
        return self.spec.rpartition(":")[0]

    @property
    def outcome(self) -> tuple[Any, ...]:
        """What two runs of the same job have in common: all but times, memory and the date."""
        return (*self.name, self.verdict, self.reason, self.exporter, self.opset, self.nodes, self.family)

    def to_line(self) -> bytes:
        """One line of JSON without what is empty."""
        kept = {name: value for name, value in asdict(self).items() if value not in ("", 0, 0.0)}
        return json.dumps(kept, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> Row:
        """Reads what `to_line` wrote.

        Raises:
            CompatError: The line is something else.
        """
        try:
            values = json.loads(line)
            return cls(**{field.name: values[field.name] for field in fields(cls) if field.name in values})
        except (ValueError, TypeError) as error:
            raise CompatError(f"is no row of a sweep: {type(error).__name__}: {error}") from error


def row_of(job: Job, **values: Any) -> Row:
    """The row of a job."""
    size = "x".join(map(str, job.size)) if job.size else ""
    same = {name: getattr(job, name) for name in ("spec", "by", "target", "versions", "code")}
    return Row(**{**same, "size": size, "asked": job.opset or 0, **values})
