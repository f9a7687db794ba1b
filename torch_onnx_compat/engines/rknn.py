"""Rockchip's RKNN, in its simulator of an RK3588, in float16.

The toolkit imports torch to read torch's own files. A stand-in for torch saves the environment some gigabytes; it
implements the few functions of torch that the toolkit computes with by numpy's.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from typing import Any

import numpy as np


class _Tensor(np.ndarray):
    """An array for a tensor of torch's."""

    def numpy(self) -> Any:
        return np.asarray(self)


def _arange(*args: Any, **_: Any) -> Any:
    return np.arange(*args).view(_Tensor)


def _split(tensor: Any, sizes: Any, dim: int = 0) -> Any:
    whole = tensor.shape[dim]
    ends = range(sizes, whole, sizes) if isinstance(sizes, int) else np.cumsum(sizes)[:-1]
    return tuple(np.split(tensor, ends, axis=dim))


def _cat(tensors: Sequence[Any], dim: int = 0) -> Any:
    return np.concatenate(list(tensors), axis=dim).view(_Tensor)


_FUNCTIONS = {"arange": _arange, "cat": _cat, "split": _split}
"""The functions of torch with which the toolkit simplifies a graph: it enumerates the places of a split."""


class _TorchModule(types.ModuleType):
    """A module in which every name is a class; its instances, used as decorators, change nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if self.__name__ == "torch" and name in _FUNCTIONS:
            return _FUNCTIONS[name]
        return type(name, (), {"__call__": lambda self, function: function})


class _TorchFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        ours = fullname.partition(".")[0] == "torch"
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True) if ours else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _TorchModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        module.__version__ = "2.4.0"  # type: ignore[attr-defined]


sys.meta_path.insert(0, _TorchFinder())

from rknn.api import RKNN  # noqa: E402


def version() -> str:
    """Version of the engine."""
    return metadata.version("rknn-toolkit2")


@contextlib.contextmanager
def _short_errors() -> Iterator[None]:
    """Leaves the last line of the toolkit's errors, each of which holds a whole traceback."""
    try:
        yield
    except ValueError as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise RuntimeError(lines[-1] if lines else "no reason given") from error


def load(path: str, feeds: dict[str, Any], outputs: list[str], variant: str) -> Callable[[dict[str, Any]], list[Any]]:
    """Returns a function from feeds to outputs."""
    engine = RKNN(verbose=False)
    engine.config(target_platform="rk3588")
    with _short_errors(), contextlib.ExitStack() as on_failure:
        on_failure.callback(engine.release)
        for step, failed in (
            ("load_onnx", engine.load_onnx(path)),
            ("build", engine.build(do_quantization=False)),
            ("init_runtime", engine.init_runtime()),
        ):
            if failed:
                raise RuntimeError(f"{step} returns {failed}")
        on_failure.pop_all()

    def run(feeds: dict[str, Any]) -> list[Any]:
        with _short_errors():
            found = engine.inference(inputs=list(feeds.values()), data_format=["nchw"] * len(feeds))
        if found is None or len(found) != len(outputs):
            raise RuntimeError("inference returns no outputs")
        return list(found)

    return run
