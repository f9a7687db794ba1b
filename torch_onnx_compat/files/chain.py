"""A new file with the stages that were cut off it, run one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import onnx

from torch_onnx_compat.files.runner import Runner, Value
from torch_onnx_compat.surgery.on_graph.stage import Stage


class FileChain:
    """A new file with its stages, which are open in a runner beside it.

    Args:
        runner: Has the file open.
        key: How the runner calls it.
        path: The file; the stages are written beside it.
        before: Stages before the file.
        after: Stages after it.
    """

    def __init__(self, runner: Runner, key: str, path: Path, before: Sequence[Stage], after: Sequence[Stage]) -> None:
        self._runner, self._key, self._path, self._before, self._after = runner, key, path, before, after
        self._outputs: list[str] = []

    def open(self) -> None:
        """Opens the stages."""
        for stage in (*self._before, *self._after):
            place = self._path.with_name(f"{stage.name}_to_check.onnx")
            stage.save(place)
            self._runner.open(stage.name, place)
        if self._after:
            graph = onnx.load(self._path, load_external_data=False).graph
            self._outputs = [value.name for value in graph.output]

    def close(self) -> None:
        """Forgets the file and the stages."""
        for key in (self._key, *(stage.name for stage in (*self._before, *self._after))):
            self._runner.close(key)

    def run(self, feeds: Mapping[str, Value], names: Sequence[str]) -> list[Value]:
        """Runs all of them.

        Raises:
            Refused: One of them does not run on these inputs.
        """
        known = self._run_stages(self._before, dict(feeds))
        given = {name: value for name, value in known.items() if not self._before or name in feeds}
        outputs = self._outputs or list(names)
        known.update(zip(outputs, self._runner.run(self._key, given, outputs), strict=True))
        known = self._run_stages(self._after, known)
        return [known[name] for name in names]

    def _run_stages(self, stages: Sequence[Stage], known: dict[str, Value]) -> dict[str, Value]:
        for stage in stages:
            results = self._runner.run(stage.name, {name: known[name] for name in stage.inputs}, stage.outputs)
            known.update((stage.feeds.get(n, n), value) for n, value in zip(stage.outputs, results, strict=True))
        return known
