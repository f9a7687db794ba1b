"""What training leaves behind: checkpoints and dropout."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, decomposition, rewrite

_OPTIONS = frozenset(
    {"use_reentrant", "preserve_rng_state", "context_fn", "determinism_check", "debug", "early_stop"}
    | {"respect_saved_tensors_hooks"}
)


# The reentrant kind is an autograd function in Python, on which a trace breaks off; checkpoint_sequential calls it.
@rewrite("torch.utils.checkpoint.checkpoint", needed_on=("torchscript",), exactness=Exactness.BITWISE)
def checkpoint_to_call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Calls what is checkpointed; gradients have no place in a file.

    Math: checkpointing forgets activations and computes them again for the gradient; the result is the function's own.
    Source: https://docs.pytorch.org/docs/stable/checkpoint.html
    """
    return function(*args, **{name: value for name, value in kwargs.items() if name not in _OPTIONS})


@decomposition(
    (torch.dropout, torch.alpha_dropout, torch.feature_dropout, torch.feature_alpha_dropout),
    needed_on=("torchscript", "dynamo"),
)
def dropout_in_training(input: Tensor, p: float, train: bool) -> Tensor:
    """Names dropout as the obstacle where an export fails on it or its numbers differ.

    Declines: training. What drops nothing is left to torch.

    Math: what is drawn in the file cannot be what was drawn in torch.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.dropout.html
    """
    if not train or not p:
        return NotImplemented
    decline("random numbers differ from run to run; export in eval mode, or multiply by a mask that is an input")
