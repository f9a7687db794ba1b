"""movedim, moveaxis with axes counted from the end -> permute.

Math:   the named axes go to their places, the others fill the rest in their order.
Source: https://docs.pytorch.org/docs/stable/generated/torch.movedim.html
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite((torch.movedim, torch.moveaxis), needed_on=("torchscript",), exactness=Exactness.BITWISE)
def movedim_to_permute(input: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """Moves axes; stock TorchScript writes negative axes into the file as they are."""
    sources = (source,) if isinstance(source, int) else tuple(source)
    destinations = (destination,) if isinstance(destination, int) else tuple(destination)
    rank = input.dim()
    if all(axis >= 0 for axis in (*sources, *destinations)):
        return NotImplemented  # type: ignore[no-any-return]
    placed = {to % rank: axis % rank for axis, to in zip(sources, destinations, strict=True)}
    others = (axis for axis in range(rank) if axis not in placed.values())
    return input.permute([placed[place] if place in placed else next(others) for place in range(rank)])
