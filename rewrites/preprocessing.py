"""Preprocessing: what models do to pictures by torchvision's functions before the network proper."""

from collections.abc import Sequence

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.catalogue.registry import machinery
from torch_onnx_compat.tracing import constant

# Normalization


@rewrite(
    "torchvision.transforms._functional_tensor.normalize",
    needed_on=("dynamo",),
    exactness=Exactness.BITWISE,
)
def normalize_to_div(tensor: Tensor, mean: Sequence[float], std: Sequence[float], inplace: bool = False) -> Tensor:
    """Normalises images (..., C, H, W); torch.export fails at torchvision's check that no deviation is 0.

    Declines: images of integers, deviations of 0, means and deviations that are tensors, writing in place.

    Math: (x - mean) / std, channel by channel.
    Source: https://docs.pytorch.org/vision/stable/generated/torchvision.transforms.Normalize.html
    """
    if inplace or not tensor.is_floating_point() or tensor.dim() < 3:
        decline("wanted images of floats, (..., C, H, W), and inplace=False")
    if not all(isinstance(n, (int, float)) for n in (*mean, *std)):
        decline("mean and std must be numbers")
    if min(map(abs, std)) < torch.finfo(tensor.dtype).tiny:
        decline("a deviation is 0")
    means, deviations = (constant([[[n]] for n in numbers], like=tensor) for numbers in (mean, std))
    return (tensor - means) / deviations


# Taken out of the file, or into the first layer: surgery/on_graph/ does it


@machinery("torch_onnx_compat.surgery.on_graph.extract", source="docs/surgery.md")
def extract_preprocessing() -> None:
    """Takes the preprocessing out of the file into result.preprocess; the same as preprocess="extract"."""


@machinery("torch_onnx_compat.surgery.on_graph.fold", source="docs/surgery.md")
def fold_preprocessing() -> None:
    """Takes the preprocessing's arithmetic into the first layer's weights; the same as preprocess="fold"."""
