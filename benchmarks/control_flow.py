"""What rewriting costs: models of many modules, all of one class, of fifty classes, or each of a class of its own.

Prints, for each number of modules, the processor seconds that finding the functions, rewriting them and exchanging
their code take; tracing, which the search does anyway, is not part of it. Usage:

    python benchmarks/control_flow.py [--modules 5000]
"""

from __future__ import annotations

import importlib.util
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from torch import nn

from torch_onnx_compat.control_flow.rewriting import Rewriting
from torch_onnx_compat.control_flow.sites import Event

CLASS = """
class Layer{number}(nn.Module):
    def forward(self, x):
        y = x * {number}
        if x.sum() > {number}:
            y = y + 1
        elif y.mean() > 0:
            return y * 2
        return y.relu()
"""


def source(classes: int) -> str:
    return "from torch import nn\n" + "".join(CLASS.format(number=number) for number in range(classes))


def load(path: Path, classes: int) -> Any:
    path.write_text(source(classes), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def events(model: nn.Module) -> list[Event]:
    """The decisions that a survey would report: two in each forward."""
    found = []
    for module in model:  # type: ignore[attr-defined]
        code = type(module).forward.__code__
        for offset in (2, 4):
            found.append(Event(code.co_filename, code.co_firstlineno + offset, "bool()", True, (), (code,)))
    return found


def seconds(model: nn.Module) -> float:
    found = events(model)
    start = time.process_time()
    rewriting = Rewriting()
    rewriting.extend(found)
    with rewriting.applied():
        pass
    return time.process_time() - start


def main(modules: Annotated[int, typer.Option(help="Modules of the largest model.")] = 5000) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for count in (modules // 4, modules // 2, modules):
            module = load(Path(folder) / f"layers_{count}.py", count)
            for classes in (1, 50, count):
                layers = (getattr(module, f"Layer{number % classes}")() for number in range(count))
                print(f"{count} modules of {classes} classes: {seconds(nn.Sequential(*layers)):.2f} s", flush=True)


if __name__ == "__main__":
    typer.run(main)
