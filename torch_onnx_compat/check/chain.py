"""Runs several sessions one after the other, as if they were one file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnxruntime


class Chain:
    """Sessions one after the other, with the interface of one onnxruntime session.

    Args:
        sessions: Each session, with the names by which later sessions read its outputs.
        outputs: Names of the chain's outputs.
    """

    def __init__(
        self, sessions: Sequence[tuple[onnxruntime.InferenceSession, Mapping[str, str]]], outputs: Sequence[str]
    ) -> None:
        self._sessions = sessions
        self._outputs = outputs

    def get_inputs(self) -> list[Any]:
        """The inputs that no earlier session computes."""
        computed: set[str] = set()
        wanted = {}
        for session, feeds in self._sessions:
            wanted.update({value.name: value for value in session.get_inputs() if value.name not in computed})
            computed.update(feeds.get(value.name, value.name) for value in session.get_outputs())
        return list(wanted.values())

    def get_outputs(self) -> list[Any]:
        """The chain's outputs."""
        values = {value.name: value for session, _ in self._sessions for value in session.get_outputs()}
        return [values[name] for name in self._outputs]

    def run_with_ort_values(self, names: Sequence[str], feeds: Mapping[str, Any]) -> list[Any]:
        """Runs the sessions; the interface is onnxruntime's."""
        known = dict(feeds)
        results: dict[str, Any] = {}
        for session, renamed in self._sessions:
            wanted = [value.name for value in session.get_outputs()]
            values = session.run_with_ort_values(wanted, {v.name: known[v.name] for v in session.get_inputs()})
            results.update(zip(wanted, values, strict=True))
            known.update((renamed.get(name, name), value) for name, value in zip(wanted, values, strict=True))
        return [results[name] for name in names]
