"""torch.nn.attention.flex_attention: attention whose scores and mask functions of the model tell.

Math: torch_onnx_compat.functional.flexible_attention.
"""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from torch_onnx_compat import Exactness, decline, decomposition, rewrite
from torch_onnx_compat.backends.internals import flexible_attention as torchs
from torch_onnx_compat.functional.flexible_attention import attend_flexibly, numbers_along
from torch_onnx_compat.functional.heads import repeat_groups
from torch_onnx_compat.tracing import static_size, without_tracing


@decomposition(torchs.operator(), needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def flex_attention_to_matmul(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Callable[..., Tensor],
    block_mask: tuple[Any, ...],
    scale: float,
    kernel_options: dict[str, Any],
    score_mod_other_buffers: tuple[Any, ...] = (),
    mask_mod_other_buffers: tuple[Any, ...] = (),
) -> tuple[Tensor, ...]:
    """Attention as two products, with the model's functions called on all scores at once.

    Declines: numbers of heads that vary; functions that make more of a score than one number, or index step by step.
    """
    heads, groups = static_size(query, 1), static_size(key, 1)
    if heads is None or groups is None:
        decline("the numbers of heads must be fixed")
    key, value = (repeat_groups(x, groups, heads // groups) for x in (key, value))
    change, mask = torchs.functions(score_mod, block_mask, score_mod_other_buffers, mask_mod_other_buffers)
    try:
        return attend_flexibly(query, key, value, change, mask, scale)[: torchs.count_results()]
    except (IndexError, RuntimeError, ValueError) as error:
        decline(f"{error}; functions are called for all scores at once: index a table once, as in table[head, q - k]")


# create_block_mask works out which blocks of a mask are closed, for kernels that skip them: of no use in a file, of
# fixed sizes, and by torch.vmap, of which TorchScript records nothing.
@rewrite(
    (f"{torchs.MODULE}._convert_mask_to_block_mask", f"{torchs.MODULE}._create_sparse_block_from_block_mask"),
    needed_on=("torchscript", "dynamo"),
    exactness=Exactness.ROUNDING,
)
def block_mask_to_one_block(mask: Any, mask_mod: Any = None, *args: Any, **kwargs: Any) -> Any:
    """One block for all queries and keys, for which no blocks of a mask are worked out.

    The mask's function tells of every single key.
    """
    return (None, None) if isinstance(mask, Tensor) else _one_block(mask_mod, None)


@rewrite(f"{torchs.MODULE}._create_empty_block_mask", needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def empty_block_mask_to_one_block(query: Tensor, key: Tensor) -> Any:
    """The block that torch makes where no mask is given."""
    return _one_block(None, query.device)


def _one_block(mask_mod: Callable[..., Tensor] | None, device: Any) -> Any:
    with without_tracing():
        return torchs.block_mask_of_one(mask_mod, device or "cpu")


@rewrite(f"{torchs.MODULE}.create_mask", needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def create_mask_to_call(mod_fn: Callable[..., Tensor], *args: Any, **kwargs: Any) -> Tensor:
    """A mask (B, H, L, S) by one call of the function that tells it."""
    if not torchs.is_mask(mod_fn):
        return NotImplemented
    given = dict(zip(("B", "H", "Q_LEN", "KV_LEN", "device"), args, strict=False)) | kwargs
    shape = [1 if size is None else size for size in (given["B"], given["H"], given["Q_LEN"], given["KV_LEN"])]
    return mod_fn(*numbers_along(shape, given.get("device") or "cpu")).expand(shape)
