"""Pictures given to a file as its input."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch_onnx_compat.cli.console import UsageError

if TYPE_CHECKING:
    from torch_onnx_compat.surgery.around_model.normalize import Normalize

ENDINGS = (".png", ".jpg", ".jpeg", ".gif", ".webp")


def picture_input(picture: Path, file: Path, normalize: Normalize | None = None) -> dict[str, Any]:
    """A picture as the first input of an ONNX file, in red, green, blue.

    It is stretched to the input's height and width where these are fixed, and is repeated to a fixed batch. Where the
    file takes real numbers, they are from 0 to 1.

    Args:
        picture: The picture.
        file: The ONNX file.
        normalize: What is put before the file: the picture is then given in its layout, as it is.

    Raises:
        UsageError: The picture cannot be read, or the input takes none.
    """
    import numpy as np
    import torch
    from PIL import Image

    from torch_onnx_compat.files.reading import read

    try:
        with Image.open(picture) as opened:
            image = torch.from_numpy(np.array(opened.convert("RGB"))).permute(2, 0, 1)
    except (ValueError, OSError) as error:
        raise UsageError(f"--input {picture}: cannot be read as a picture: {error}") from error
    graph = read(file).graph().graph
    inputs = {str(value.name): value for value in graph.inputs if value.name not in graph.initializers}
    name = (normalize.input if normalize is not None else None) or next(iter(inputs), "")
    if normalize is not None:
        return {name: _arrange(image, normalize.layout)}
    value = inputs.get(name)
    shape = tuple(value.shape) if value is not None and value.shape is not None else ()
    layout = {1: "NCHW", 3: "NHWC"}.get(next((axis for axis in (1, 3) if len(shape) == 4 and shape[axis] == 3), 0), "")
    if value is None or value.dtype is None or not layout:
        raise UsageError(
            f"--input {picture}: input {name!r} is of shape {list(map(str, shape))}; wanted one of pictures."
        )
    sizes = dict(zip(layout, shape, strict=True))
    wanted = [s if isinstance(s := sizes[c], int) else length for c, length in zip("HW", image.shape[1:], strict=True)]
    real = image[None].float()
    if list(image.shape[1:]) != wanted:
        real = torch.nn.functional.interpolate(real, wanted, mode="bilinear", antialias=True).round().clamp(0, 255)
    array = _arrange(real[0], layout).repeat(sizes["N"] if isinstance(sizes["N"], int) else 1, axis=0)
    dtype = value.dtype.numpy()
    return {name: (array / 255).astype(dtype) if np.issubdtype(dtype, np.floating) else array.astype(dtype)}


def _arrange(image: Any, layout: str) -> Any:
    """A picture (3, H, W) in another order of axes, with a batch of one where the layout has one."""
    order = ["CHW".index(letter) for letter in layout if letter != "N"]
    array = image.permute(*order).numpy()
    return array[None] if layout.startswith("N") else array
