"""channel_shuffle, nn.ChannelShuffle -> the channels read in their new order.

Math:   with g groups of c channels, channel i * g + j of the result is channel j * c + i.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.ChannelShuffle.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.take import take
from torch_onnx_compat.tracing import constant, static_size


@rewrite((torch.channel_shuffle, torch.native_channel_shuffle), needed_on=("torchscript",), exactness=Exactness.BITWISE)
def channel_shuffle_to_take(input: Tensor, groups: int) -> Tensor:
    """Shuffles (N, C, ...); stock TorchScript has no symbolic for it."""
    channels = static_size(input, 1)
    if channels is None:
        shuffled: Tensor = input.unflatten(1, (groups, -1)).transpose(1, 2).flatten(1, 2)
        return shuffled
    order = [start for first in range(channels // groups) for start in range(first, channels, channels // groups)]
    return take(input, constant(order, like=input, dtype=torch.int64), 1)
