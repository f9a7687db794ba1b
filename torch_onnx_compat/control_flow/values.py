"""The decisions on values that a rewritten model takes, and eager runs of the original that tell their answers."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from torch_onnx_compat.control_flow.lower.rewriting import Rewriting
from torch_onnx_compat.control_flow.run.answers import AnswerLog, OutOfTime, Site
from torch_onnx_compat.inputs.inputs import Inputs
from torch_onnx_compat.observe import Observation, Subject


@dataclass(frozen=True)
class Run:
    """An eager run of the original."""

    inputs: Inputs
    log: AnswerLog
    outputs: tuple[Tensor, ...]


@dataclass(frozen=True)
class ValueDecisions:
    """The decisions on values that a file takes.

    Attributes:
        sites: Decisions, each with its place, ``models/net.py:41``.
        loops: Loops whose rounds values decide, with their places.
        in_file: The places of those loops that run in the file.
    """

    sites: Mapping[Site, str]
    loops: Mapping[Site, str]
    in_file: frozenset[str]
    rewriting: Rewriting

    def __bool__(self) -> bool:
        return bool(self.sites or self.loops)

    def run(self, subject: Subject, inputs: Inputs, seconds: float) -> Run | None:
        """Runs the original with its decisions rewritten, which in eager torch is the original.

        Args:
            subject: A twin without entries.
            inputs: What to run it on.
            seconds: What the run may take.

        Returns:
            The run; None where the model refuses the inputs, or takes too long.
        """
        log = AnswerLog(seconds)
        try:
            with warnings.catch_warnings(), torch.no_grad(), self.rewriting.apply():
                warnings.simplefilter("ignore")
                with log.recording():
                    outputs = subject(*[tensor.clone() for tensor in inputs.tensors])
        except MemoryError:
            raise
        except (Exception, OutOfTime):  # the model's own refusal
            return None
        return Run(inputs, log, tuple(output.detach() for output in outputs))


def fresh_subject(observation: Observation) -> Subject:
    """A twin of the original, behind a forward of flat tensors."""
    prepared = observation.prepared
    return Subject(prepared.twin(), prepared.inputs, boundary=prepared.boundary)
