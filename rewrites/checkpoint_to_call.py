"""torch.utils.checkpoint.checkpoint -> the call itself.

Math:   checkpointing forgets activations and computes them again for the gradient; the result is the function's own.
Source: https://docs.pytorch.org/docs/stable/checkpoint.html
"""

from collections.abc import Callable
from typing import Any

from torch_onnx_compat import Exactness, rewrite

_OPTIONS = frozenset(
    {"use_reentrant", "preserve_rng_state", "context_fn", "determinism_check", "debug", "early_stop"}
    | {"respect_saved_tensors_hooks"}
)


# The reentrant kind is an autograd function in Python, on which a trace breaks off; checkpoint_sequential calls it.
@rewrite("torch.utils.checkpoint.checkpoint", needed_on=("torchscript",), exactness=Exactness.BITWISE)
def checkpoint_to_call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Calls what is checkpointed; gradients have no place in a file."""
    return function(*args, **{name: value for name, value in kwargs.items() if name not in _OPTIONS})
