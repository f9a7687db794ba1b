"""From a spec such as ``torchvision:raft_small`` or ``model.py:make`` to a model with example inputs."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, runtime_checkable

import torch.export
from torch import nn

from torch_onnx_compat.errors import ClashError, CompatError, unknown_name
from torch_onnx_compat.zoo.sample import Sample, Size

ENTRY_POINT_GROUP = "torch_onnx_compat.zoo"
BUILT_IN = tuple(
    EntryPoint(name=name, value=f"torch_onnx_compat.zoo.{name}", group=ENTRY_POINT_GROUP)
    for name in ("smp", "timm", "torchaudio", "torchvision", "transformers", "ultralytics")
)


@runtime_checkable
class Zoo(Protocol):
    """A collection of models; an object or a module with these two functions, named by an entry point.

    It may have a third, ``family(name: str) -> str``, under which summaries count a model.
    """

    def names(self) -> list[str]:
        """Names that `build` accepts, sorted."""

    def build(self, name: str, size: Size | None = None) -> Sample:
        """Builds one model with random weights from a fixed seed.

        Args:
            name: One of `names`.
            size: Height and width of the example picture; what the model was trained for by default.
        """


def zoos() -> dict[str, EntryPoint]:
    """Where each zoo is, by the prefix that names it in a spec; nothing is imported.

    Raises:
        ClashError: Two distributions offer a zoo of the same name.
    """
    found: dict[str, EntryPoint] = {}
    for point in (*BUILT_IN, *sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda p: p.name)):
        other = found.setdefault(point.name, point)
        if other.value != point.value:
            raise ClashError(
                f"zoo {point.name!r} is offered by both {_owner(other)} and {_owner(point)}; uninstall one of them."
            )
    return found


def find(name: str) -> Zoo:
    """Imports the zoo of that name.

    Raises:
        CompatError: There is none, it cannot be imported, or it is not a `Zoo`.
    """
    points = zoos()
    if name not in points:
        raise unknown_name("zoo", name, points)
    point = points[name]
    try:
        zoo = point.load()
    except ModuleNotFoundError as error:
        raise CompatError(f"zoo {name!r} needs {error.name!r}, which is not installed; install it.") from error
    except Exception as error:
        raise CompatError(
            f"zoo {name!r} of {_owner(point)}: importing {point.value!r} failed with {type(error).__name__}: {error}; "
            f"uninstall or repair it."
        ) from error
    if not isinstance(zoo, Zoo):
        raise CompatError(f"zoo {name!r} of {_owner(point)}: {point.value!r} has no names() and build(); repair it.")
    return zoo


def family(spec: str) -> str:
    """What kind of model a spec names: as its zoo says, or else the letters that its name begins with."""
    source, _, name = spec.rpartition(":")
    told = getattr(find(source), "family", None) if source in zoos() else None
    if told is not None:
        return str(told(name))
    letters = re.match(r"[^\W\d_]+", Path(name).stem)
    return letters[0] if letters else name


def load(spec: str, size: Size | None = None) -> Sample:
    """Loads a model with example inputs.

    Args:
        spec: ``zoo:model`` (see `zoos`); ``file.py:name`` or ``package.module:name``, where the name is a module, or
            a callable without arguments that returns ``model``, ``(model, args)`` or ``(model, args, kwargs)``; or
            ``file.pt2``, what torch.export.save wrote.
        size: Height and width of the example pictures, in pixels; as the zoo or the factory has them by default.

    Raises:
        CompatError: There is nothing of that name, or it cannot be loaded.
    """
    if spec.endswith(".pt2"):
        sample = _exported_program(Path(spec))
        return sample.at_size(size) if size else sample
    source, colon, name = spec.rpartition(":")
    if not colon or not source or not name:
        raise CompatError(
            f"spec {spec!r}: wanted 'zoo:model', 'file.py:factory', 'package.module:factory' or 'file.pt2'."
        )
    if source in zoos():
        return find(source).build(name, size)
    with _path_entry(Path(source).parent.resolve() if source.endswith(".py") else Path.cwd()):
        sample = _sample(spec, _call(spec, _factory(source, name)))
    return sample.at_size(size) if size else sample


def _owner(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "torch_onnx_compat"


def _exported_program(path: Path) -> Sample:
    if not path.is_file():
        raise CompatError(f"{path}: no such file.")
    try:
        program = torch.export.load(path)
    except Exception as error:
        raise CompatError(f"{path}: torch.export.load failed with {type(error).__name__}: {error}") from error
    args, kwargs = program.example_inputs or ((), {})
    return Sample(program.module(), tuple(args), kwargs)


@contextmanager
def _path_entry(folder: Path) -> Iterator[None]:
    """Lets code import what lies in a folder, as when it is run from there."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        with suppress(ValueError):  # the imported code may have taken it off
            sys.path.remove(str(folder))


def _factory(source: str, name: str) -> Any:
    found: Any = _file(Path(source)) if source.endswith(".py") else _module(source)
    for part in name.split("."):
        if not hasattr(found, part):
            raise unknown_name(f"name in {source}", part, (n for n in vars(found) if not n.startswith("_")))
        found = getattr(found, part)
    return found


def _file(path: Path) -> ModuleType:
    if not path.is_file():
        raise CompatError(f"{path}: no such file.")
    name = f"spec_{path.stem}"  # never the name of an installed module
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look a class's module up by name
    with _importing(str(path)):
        spec.loader.exec_module(module)
    return module


def _module(name: str) -> ModuleType:
    top = name.partition(".")[0]
    if not top.isidentifier() or importlib.util.find_spec(top) is None:
        raise unknown_name("zoo or module", name, zoos())
    with _importing(name):
        return importlib.import_module(name)


@contextmanager
def _importing(what: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise CompatError(f"{what}: importing it failed with {type(error).__name__}: {error}") from error


def _call(spec: str, factory: Any) -> Any:
    if isinstance(factory, nn.Module):
        return factory
    if not callable(factory):
        raise CompatError(f"{spec}: is a {type(factory).__name__}; wanted a callable without arguments, or a model.")
    try:
        return factory()
    except Exception as error:
        raise CompatError(f"{spec}: calling it failed with {type(error).__name__}: {error}") from error


def _sample(spec: str, made: Any) -> Sample:
    if isinstance(made, Sample):
        return made
    parts = made if isinstance(made, tuple) else (made,)
    fits = 1 <= len(parts) <= 3 and isinstance(parts[0], nn.Module)
    if not fits or (len(parts) == 3 and not isinstance(parts[2], Mapping)):
        raise CompatError(
            f"{spec}: returned a {type(made).__name__}; wanted a model, (model, args) or (model, args, kwargs)."
        )
    args = parts[1] if len(parts) > 1 else ()
    return Sample(parts[0], args if isinstance(args, tuple) else (args,), parts[2] if len(parts) > 2 else {})
