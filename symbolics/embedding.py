"""Embedding tables, and bags of their rows, without a loop over the bags.

Math:   rows of a table are reduced over bags: the second axis of 2-D indices, or the runs of 1-D indices that start at
        offsets. There, the bag of index i has the number of offsets that are at most i, less 1: a running sum of the
        ones that the offsets scatter.
"""

import torch
from torch import Tensor
from torch.nn import functional

from torch_onnx_compat import Exactness, decline, decomposition

# Bags


# Both exporters write a loop that reads bag after bag; TorchScript refuses padding_idx, and errs on empty bags.
@decomposition(functional.embedding_bag, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
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
    """Sums, means or largest values of bags of rows; an empty bag gives zeros.

    Declines: max_norm, which writes to the table; 1-D indices without offsets.

    Math:   rows behind a last offset belong to no bag in sums and means of float32 and narrower types without padding,
            and to the last bag elsewhere, as in torch.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.embedding_bag.html;
            is_fast_path_index_select and make_bag_size of ATen/native/EmbeddingBag.cpp
    """
    if max_norm is not None:
        decline(f"max_norm must be None, got {max_norm}: it would write to the weights")
    if input.is_floating_point():  # the order of arguments that torch once had
        return NotImplemented
    rows = functional.embedding(input, weight)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(-1)
    counted = None
    if padding_idx is not None:
        counted = input != (padding_idx if padding_idx >= 0 else weight.shape[0] + padding_idx)
    if input.dim() == 2:
        return _reduce_rows(rows, counted, mode)
    if offsets is None:
        decline("offsets must be given with 1-D input")
    reduce = _reduce_ended_runs if include_last_offset else _reduce_runs
    return reduce(rows, offsets.long(), counted, mode)


def _reduce_rows(rows: Tensor, counted: Tensor | None, mode: str) -> Tensor:
    """Bags of equal length, (B, L, D), reduced to (B, D).

    Args:
        rows: Of the table.
        counted: False where a row is padding, (B, L); None where none is.
        mode: "sum", "mean" or "max".
    """
    if counted is None:
        if mode == "max":
            return rows.amax(1)
        return rows.mean(1) if mode == "mean" else rows.sum(1)
    mask = counted.unsqueeze(-1)
    if mode == "max":
        largest = torch.where(mask, rows, _scalar(float("-inf"), rows)).amax(1)
        return _zero_where_empty(largest, mask.to(torch.int32).sum(1))
    total = torch.where(mask, rows, _scalar(0.0, rows)).sum(1)
    return total / counted.to(rows.dtype).sum(1, keepdim=True).clamp(min=1) if mode == "mean" else total


def _reduce_runs(rows: Tensor, starts: Tensor, counted: Tensor | None, mode: str) -> Tensor:
    """Bags that are runs of rows (I, D), reduced to (B, D).

    Args:
        rows: Of the table.
        starts: Of the runs, (B,), the first one 0.
        counted: False where a row is padding, (I,); None where none is.
        mode: "sum", "mean" or "max".
    """
    ones = torch.ones_like(starts)
    # The last mark is that of empty bags at the end, which start behind the last row.
    marks = torch.cat((torch.zeros_like(rows[:, 0], dtype=torch.int64), ones[:1] * 0)).scatter_add(0, starts, ones)
    bag = marks.cumsum(0)[:-1] - 1
    if mode == "max":
        member = bag == torch.arange(starts.shape[0], device=rows.device).unsqueeze(-1)
        if counted is not None:
            member = member & counted
        count = member.to(torch.int32).sum(1).unsqueeze(-1)
        lowest = rows.new_full((starts.shape[0], 1, rows.shape[1]), float("-inf"))
        candidates = torch.where(member.unsqueeze(-1), rows, _scalar(float("-inf"), rows))
        # One more candidate, for there is no largest of none at all.
        return _zero_where_empty(torch.cat((candidates, lowest), 1).amax(1), count)
    if counted is not None:
        rows = torch.where(counted.unsqueeze(-1), rows, _scalar(0.0, rows))
    empty = rows.new_zeros(starts.shape[0], rows.shape[1])
    total = empty.scatter_add(0, bag.unsqueeze(-1).expand_as(rows), rows)
    if mode == "sum":
        return total
    each = torch.ones_like(rows[:, 0]) if counted is None else counted.to(rows.dtype)
    return total / empty[:, 0].scatter_add(0, bag, each).clamp(min=1).unsqueeze(-1)


def _reduce_ended_runs(rows: Tensor, offsets: Tensor, counted: Tensor | None, mode: str) -> Tensor:
    """The same of runs whose last offset (B + 1,) is the end of the last one."""
    if mode == "max" or counted is not None or rows.dtype == torch.float64:
        return _reduce_runs(rows, offsets[:-1], counted, mode)
    # Torch's faster kernel alone ends the last bag where the last offset says, but counts the rows behind it too.
    total = _reduce_runs(rows, offsets, None, "sum")[:-1]
    if mode == "sum":
        return total
    return total / _reduce_runs(torch.ones_like(rows[:, :1]), offsets[:-1], None, "sum").clamp(min=1)


def _zero_where_empty(largest: Tensor, count: Tensor) -> Tensor:
    return torch.where(count > 0, largest, _scalar(0.0, largest))


def _scalar(value: float, like: Tensor) -> Tensor:
    return torch.full((), value, dtype=like.dtype, device=like.device)


# Rows


# TorchScript loses it, and stores a table in which the rows of the example alone are shortened.
@decomposition(functional.embedding, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def embedding_max_norm_to_mul(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Rows of a table, none of them longer than max_norm.

    Math:   a row longer than max_norm is multiplied by max_norm / (norm + 1e-7), as embedding_renorm_ does in the
            table.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.embedding.html; ATen/native/Embedding.cpp
    """
    if max_norm is None:
        return NotImplemented
    rows = functional.embedding(input, weight)
    norm = torch.linalg.vector_norm(rows, norm_type, -1, keepdim=True)
    return torch.where(norm > max_norm, rows * (max_norm / (norm + 1e-7)), rows)
