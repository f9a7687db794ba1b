"""F.embedding_bag, nn.EmbeddingBag -> rows of the table, reduced without a loop.

Math:   torch_onnx_compat.functional.embedding_bag.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.embedding_bag.html
"""

from torch import Tensor
from torch.nn import functional

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.embedding_bag import reduce_rows, reduce_runs


# Both exporters write a loop that reads bag after bag; TorchScript refuses padding_idx, and errs on empty bags.
@rewrite(functional.embedding_bag, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def embedding_bag_to_embedding(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Sums, means or largest values of bags of rows, those of an empty bag being zeros.

    Stock TorchScript's file runs a Loop over the bags, stock dynamo has no function for most of them.

    Declines: max_norm, which writes to the table.
    """
    if max_norm is not None:
        decline(f"max_norm must be None, got {max_norm}: it would write to the weights")
    if input.is_floating_point():  # the order of arguments that torch once had
        return NotImplemented  # type: ignore[no-any-return]
    rows = functional.embedding(input, weight)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(-1)
    counted = None
    if padding_idx is not None:
        counted = input != (padding_idx if padding_idx >= 0 else weight.shape[0] + padding_idx)
    if input.dim() == 2:
        return reduce_rows(rows, counted, mode)
    if offsets is None:
        decline("offsets must be given with 1-D input")
    starts = offsets[:-1] if include_last_offset else offsets
    return reduce_runs(rows, starts.long(), counted, mode)
