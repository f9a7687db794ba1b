"""torch.rrelu outside training -> F.leaky_relu.

Math:   the slope is the mean of the bounds between which training draws it.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.RReLU.html
"""

import torch
from torch import Tensor, nn

from torch_onnx_compat import Exactness, decline, rewrite


@rewrite((torch.rrelu, torch.rrelu_), needed_on=("dynamo",), exactness=Exactness.BITWISE)
def rrelu_to_leaky_relu(
    input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, generator: None = None
) -> Tensor:
    """Leaky ReLU of the mean slope; stock dynamo has no translation of the operator.

    Declines: training, whose slopes are random.
    """
    if training:
        decline("random numbers differ from run to run; export in eval mode")
    return nn.functional.leaky_relu(input, (lower + upper) / 2)
