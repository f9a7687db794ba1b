"""What a model's library writes into the metadata of its own files, wherever the model came from."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn


def metadata_of(model: nn.Module, tensors: Sequence[Tensor]) -> dict[str, str]:
    """The entries by which a library reads a file of its model; none for models of no such library.

    Args:
        model: The model, wrappers taken off.
        tensors: Its example inputs.
    """
    if not any(
        f"{kind.__module__}.{kind.__name__}" == "ultralytics.nn.tasks.BaseModel" for kind in type(model).__mro__
    ):
        return {}
    from torch_onnx_compat.zoo.ultralytics import describe

    return describe(model, tensors[0])
