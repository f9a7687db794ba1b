"""F.dropout(training=True) and its kin -> declined, with what to do instead.

Math:   what is drawn in the file cannot be what was drawn in torch.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.dropout.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import decline, rewrite


@rewrite(
    (torch.dropout, torch.alpha_dropout, torch.feature_dropout, torch.feature_alpha_dropout),
    needed_on=("torchscript", "dynamo"),
)
def dropout_in_training(input: Tensor, p: float, train: bool) -> Tensor:
    """Names dropout as the obstacle where an export fails on it or its numbers differ.

    Declines: training. What drops nothing is left to torch.
    """
    if not train or not p:
        return NotImplemented  # type: ignore[no-any-return]
    decline("random numbers differ from run to run; export in eval mode, or multiply by a mask that is an input")
