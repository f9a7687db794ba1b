"""Many models: each exported and judged in a process of its own, on any executor, into one file of rows."""

from torch_onnx_compat.sweep.client import run_job
from torch_onnx_compat.sweep.job import BY, VERDICTS, Job, Row
from torch_onnx_compat.sweep.log import read_rows
from torch_onnx_compat.sweep.sweep import jobs_of, sweep

__all__ = ["BY", "VERDICTS", "Job", "Row", "jobs_of", "read_rows", "run_job", "sweep"]
