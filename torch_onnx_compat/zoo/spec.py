"""From a spec such as ``torchvision:raft_small`` or ``model.py:make`` to a model with example inputs."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from torch_onnx_compat.errors import ClashError, CompatError, unknown_name

if TYPE_CHECKING:  # the command line looks names up before it loads torch
    from torch_onnx_compat.zoo.sample import Sample, Size

SUFFIXES = (".pt2", ".pt")
ENTRY_POINT_GROUP = "torch_onnx_compat.zoo"
BUILT_IN = tuple(
    EntryPoint(name=name, value=f"torch_onnx_compat.zoo.{name}", group=ENTRY_POINT_GROUP)
    for name in ("hf", "smp", "timm", "torchaudio", "torchvision", "transformers", "ultralytics")
)


@runtime_checkable
class Zoo(Protocol):
    """A collection of models; an object or a module with these two functions, named by an entry point.

    It may have two more: ``family(name: str) -> str``, under which summaries count a model, and ``build_trained(name,
    weights, size) -> Sample``, which builds a model with weights that its library has or downloads: those of a name, or
    with `DEFAULT` those that the library prefers. Where `build` gives trained weights itself, ``TRAINED`` is true.
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


def load(spec: str, size: Size | None = None, weights: str | None = None) -> Sample:
    """Loads a model with example inputs.

    Args:
        spec: ``zoo:model`` (see `zoos`); ``file.py:name`` or ``package.module:name``, where the name is a module, or
            a callable without arguments that returns ``model``, ``(model, args)`` or ``(model, args, kwargs)``;
            ``file.pt2``, what torch.export.save wrote; or ``file.pt``, ultralytics' or what torch.jit.save wrote.
        size: Height and width of the example pictures, in pixels; as the zoo or the factory has them by default.
        weights: A checkpoint, or the name of weights that the zoo's library has, `DEFAULT` for those that it prefers.

    Raises:
        CompatError: There is nothing of that name, or it cannot be loaded.
    """
    if _is_file(spec):
        if weights is not None:
            raise CompatError(f"{spec}: the file holds its own weights; leave out {weights!r}.")
        return _from_file(Path(spec), size)
    if weights is None or is_path(weights):
        sample = _untrained(spec, size)
        if weights is None:
            return sample
        from torch_onnx_compat.zoo.weights import load_checkpoint

        load_checkpoint(sample.model, Path(weights))
        return replace(sample, random="")
    return _trained(spec, size, weights)


def check(spec: str) -> None:
    """Says without a slow import what is wrong with a spec, so far as its form and the zoo's name show it.

    Raises:
        CompatError: As `load`.
    """
    if _is_file(spec):
        _check_file(Path(spec))
        return
    source, _ = _parts(spec)
    if source in zoos():
        return
    if source.endswith(".py"):
        if not Path(source).is_file():
            raise CompatError(f"{source}: no such file.")
    else:
        with path_entry(Path.cwd()):
            _check_module(source)


def _is_file(spec: str) -> bool:
    return spec.endswith(SUFFIXES) and spec.partition(":")[0] not in zoos()


def is_path(weights: str, folder: Path = Path()) -> bool:
    """Whether weights are named by a file, which may lie in a folder, as against by their name in a library."""
    return bool(Path(weights).suffix or os.sep in weights) or (folder / weights).is_file()


def from_folder(spec: str, folder: Path) -> str:
    """The spec whose file or folder, if it names one, is taken from a folder."""
    if _is_file(spec):
        return str(folder / spec) if (folder / spec).is_file() or not _is_downloaded(Path(spec)) else spec
    source, _, name = _partition(spec)
    if source.endswith(".py"):
        return f"{folder / source}:{name}"
    place, mark, task = name.partition("#")
    if source == "hf" and (folder / place).is_dir():
        return f"{source}:{folder / place}{mark}{task}"
    return spec


def _untrained(spec: str, size: Size | None) -> Sample:
    source, name = _parts(spec)
    if source in zoos():
        zoo = find(source)
        sample = zoo.build(name, size)
        return sample if getattr(zoo, "TRAINED", False) else replace(sample, random="all")
    with path_entry(Path(source).parent.resolve() if source.endswith(".py") else Path.cwd()):
        sample = _sample(spec, _call(spec, _factory(source, name)))
    return sample.at_size(size) if size else sample


def _from_file(path: Path, size: Size | None) -> Sample:
    from torch_onnx_compat.zoo.files import load_file
    from torch_onnx_compat.zoo.sample import DEFAULT

    if path.is_file():
        return load_file(path, size)
    _check_file(path)
    try:
        return _trained(f"ultralytics:{path.stem}", size, DEFAULT)
    except CompatError as error:
        raise CompatError(f"{path}: no such file; {error}") from error


def _check_file(path: Path) -> None:
    if not path.is_file() and not (_is_downloaded(path) and importlib.util.find_spec("ultralytics") is not None):
        raise CompatError(f"{path}: no such file.")


def _is_downloaded(path: Path) -> bool:
    """Whether a file is called like one of ultralytics', which downloads its own: yolo11n.pt."""
    return path.name == str(path) and path.suffix == ".pt" and path.stem.startswith(("yolo", "rtdetr"))


def _trained(spec: str, size: Size | None, weights: str) -> Sample:
    source, name = _parts(spec)
    build = getattr(find(source), "build_trained", None) if source in zoos() else None
    if build is None:
        from torch_onnx_compat.zoo.sample import DEFAULT

        which = "no trained weights are known" if weights == DEFAULT else f"no weights are called {weights!r}"
        raise CompatError(f"{spec}: {which}; load them in the factory, or give a checkpoint's file: --weights FILE.")
    from torch_onnx_compat.zoo.weights import quiet_hub

    try:
        with quiet_hub():
            sample: Sample = build(name, weights, size)
    except CompatError:
        raise
    except Exception as error:  # what the libraries, their HTTP clients and the file system raise has no common class
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise CompatError(
            f"{spec}: its trained weights cannot be had: {first} ({type(error).__name__}). Libraries download them "
            f"once; without a network, give the file of a checkpoint."
        ) from error
    return sample


def _parts(spec: str) -> tuple[str, str]:
    """What stands before the colon, and what after it."""
    source, colon, name = _partition(spec)
    if not colon or not source or not name:
        if spec.endswith(".onnx"):
            raise CompatError(f"{spec}: is an ONNX file already; `torch-onnx-compat convert {spec}` takes such files.")
        if spec.endswith(".py") and Path(spec).is_file():
            raise CompatError(f"{spec}: name what makes the model, as {spec}:NAME; it has {_names_in(Path(spec))}.")
        if Path(spec).is_file():
            raise CompatError(
                f"{spec}: a model is a file .pt2 or .pt. If this one holds a state_dict, name the architecture and "
                f"give it as its weights: timm:NAME --weights {spec}, or file.py:factory likewise."
            )
        raise CompatError(
            f"spec {spec!r}: wanted 'zoo:model', 'file.py:factory', 'package.module:factory', 'file.pt2' or 'file.pt'."
        )
    return source, name


def _partition(spec: str) -> tuple[str, str, str]:
    """A spec at the colon after the zoo, the file or the module."""
    return spec.partition(":") if spec.partition(":")[0] in zoos() else spec.rpartition(":")


def _names_in(path: Path) -> str:
    """What a file defines and could make a model, as text; the file does not run."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError) as error:
        raise CompatError(f"{path}: is no Python that can be read: {error}") from error
    kinds = (ast.FunctionDef, ast.ClassDef)
    names = [node.name for node in tree.body if isinstance(node, kinds) and not node.name.startswith("_")]
    return ", ".join(names) or "no function and no class"


def _owner(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "torch_onnx_compat"


@contextmanager
def path_entry(folder: Path) -> Iterator[None]:
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
            raise unknown_name(f"name in {source}", part, _names_of(found))
        found = getattr(found, part)
    return found


def _names_of(holder: Any) -> list[str]:
    """What could make a model: of a module, what it defines itself and the models that it holds."""
    named = {name: value for name, value in vars(holder).items() if not name.startswith("_")}
    if not isinstance(holder, ModuleType):
        return list(named)
    own = holder.__name__
    return [n for n, value in named.items() if getattr(value, "__module__", None) == own or _is_model(value)]


def _is_model(value: Any) -> bool:
    torch = sys.modules.get("torch")  # who has a model has loaded torch
    return torch is not None and isinstance(value, torch.nn.Module)


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
    _check_module(name)
    with _importing(name):
        return importlib.import_module(name)


def _check_module(name: str) -> None:
    top = name.partition(".")[0]
    if not top.isidentifier() or importlib.util.find_spec(top) is None:
        raise unknown_name("zoo or module", name, zoos())


@contextmanager
def _importing(what: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise CompatError(f"{what}: importing it failed with {type(error).__name__}: {error}") from error


def _call(spec: str, factory: Any) -> Any:
    from torch import nn

    if isinstance(factory, nn.Module):
        return factory
    if not callable(factory):
        raise CompatError(
            f"{spec}: is of type {type(factory).__name__}; wanted a callable without arguments, or a model."
        )
    try:
        return factory()
    except Exception as error:
        raise CompatError(f"{spec}: calling it failed with {type(error).__name__}: {error}") from error


def _sample(spec: str, made: Any) -> Sample:
    from torch import nn

    from torch_onnx_compat.zoo.sample import Sample

    if isinstance(made, Sample):
        return made
    parts = made if isinstance(made, tuple) else (made,)
    fits = 1 <= len(parts) <= 3 and isinstance(parts[0], nn.Module)
    if not fits or (len(parts) == 3 and not isinstance(parts[2], Mapping)):
        raise CompatError(
            f"{spec}: returned a value of type {type(made).__name__}; wanted a model, (model, args) or "
            f"(model, args, kwargs)."
        )
    args = parts[1] if len(parts) > 1 else ()
    return Sample(parts[0], args if isinstance(args, tuple) else (args,), parts[2] if len(parts) > 2 else {})
