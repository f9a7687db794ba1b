"""Models from files: ``.pt2`` of torch.export, and ``.pt`` of ultralytics or torch.jit."""

from __future__ import annotations

import importlib.util
import logging
import warnings
import zipfile
from pathlib import Path
from typing import Any

import torch

from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.zoo.sample import Sample, Size
from torch_onnx_compat.zoo.weights import quiet


def load_file(path: Path, size: Size | None = None) -> Sample:
    """Loads a model that is a file.

    Args:
        path: What torch.export.save wrote (``.pt2``), or a checkpoint of ultralytics or what torch.jit.save wrote
            (``.pt``).
        size: Height and width of the example pictures.

    Raises:
        CompatError: It is of another kind.
    """
    if path.suffix == ".pt2":
        sample = _exported_program(path)
        return sample.at_size(size) if size else sample
    if _is_scripted(path):
        return _scripted(path)
    if not zipfile.is_zipfile(path):  # asked first, since importing ultralytics writes its settings
        raise CompatError(f"{path}: no archive of torch.save or torch.jit.save; save the model again with torch.save.")
    if importlib.util.find_spec("ultralytics") is None:
        raise CompatError(
            f"{path}: ultralytics, whose checkpoints hold a model, is not installed. If the file holds a state_dict, "
            f"name the architecture and give it as its weights: timm:NAME --weights {path}."
        )
    from torch_onnx_compat.zoo.ultralytics import load_checkpoint

    return load_checkpoint(path, size)


def _exported_program(path: Path) -> Sample:
    try:
        with quiet("torch.export", logging.CRITICAL):  # it logs a traceback before it raises
            program = torch.export.load(path)
    except Exception as error:
        why = str(error).partition(" Please check the warnings above")[0]
        raise CompatError(
            f"{path}: torch.export.load failed with {type(error).__name__}: {why} Wanted what torch.export.save wrote."
        ) from error
    args, kwargs = program.example_inputs or ((), {})
    return Sample(program.module(), tuple(args), kwargs)


def _is_scripted(path: Path) -> bool:
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return any(name.endswith("/constants.pkl") for name in archive.namelist())


def _scripted(path: Path) -> Sample:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # of torch.jit's end, which whoever has the file knows
            model: Any = torch.jit.load(path, map_location="cpu")
    except RuntimeError as error:
        raise CompatError(f"{path}: torch.jit.load failed: {str(error).splitlines()[0]}") from error
    return Sample(model.eval())
