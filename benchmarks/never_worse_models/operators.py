"""Operators in element types and with arguments that few models have."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from never_worse_models.table import B, X, Y, add, rand

add("normal_log_prob", lambda m, s, v: torch.distributions.Normal(m, s).log_prob(v), (X, X.abs() + 1, X), None, [])
add("uniform_log_prob", lambda a, b, v: torch.distributions.Uniform(a, b).log_prob(v), (X, X + 2, X + 1), None, [])
add("one_hot_of_largest", lambda x, n: F.one_hot(x, int(n.to(torch.int32)[0])), (torch.arange(4), torch.tensor([5])))
add("repeat_interleave", lambda x, r: x.repeat_interleave(r, dim=1), (rand(2, 3), torch.tensor([2])))
add("outer_of_two_types", torch.outer, (rand(3), rand(4).double()), {0: {0: "n"}}, [(rand(5), rand(4).double())])
add("celu_double", lambda x: F.celu(x), (X.double(),), B, [(Y.double(),)])


def _view_write(x: Tensor) -> Tensor:
    x = x.view(-1, 2)
    x[0] = 0
    return x


def _slice_add(x: Tensor) -> Tensor:
    y = x[2:4]
    y += 1
    return y


add("write_to_view", _view_write, (X,), B, [(Y,)])
add("zero_of_slice", lambda x: x[2:4].zero_(), (rand(5, 4),), B, [(rand(6, 4),)])
add("add_to_slice", _slice_add, (rand(5, 4),), B, [(rand(6, 4),)])


def _assign(x: Tensor) -> Tensor:
    o = x.permute(0, 2, 1)
    o[:, :, 0] = 5.0
    return o


add("assign_to_view", _assign, (rand(2, 3, 4),), B, [(rand(5, 3, 4),)])
_TWO = [(Y,), (rand(5, 5),)]
add("is_square", lambda x: (x + 1, torch.sym_not(x.shape[0] == x.shape[1])), (X,), {0: {0: "h", 1: "w"}}, _TWO)
add("zeros_of_slice", lambda x: x.new_zeros(x.shape[1 : x.size(2)]) + x[0], (rand(2, 3, 3),), B, [(rand(4, 3, 3),)])
add("logdet_of_empty", torch.logdet, (torch.zeros(0, 1, 1),))
add("chunk", lambda x: torch.chunk(x, 3, 1), (rand(2, 6),), B, [(rand(4, 6),)])
add("chunk_of_dynamic", lambda x: torch.chunk(x, 3, 1)[0], (rand(2, 6),), {0: {1: "n"}}, [(rand(2, 9),)])
add("addcmul_of_numbers", torch.addcmul, (torch.tensor(1.0), torch.tensor(2.0), torch.tensor(3.0)))
add("sum_of_nothing", lambda x: x[0:0].sum() + x.sum(), (X,), B, [(Y,)])
add("only_sum_of_nothing", lambda x: x[0:0].sum(), (X,), B, [(Y,)])
add("mean_of_number", lambda x: x.sum(0), (torch.tensor(2.0),))
add("max_of_bytes", lambda x: x.max(0), (torch.arange(12, dtype=torch.uint8).reshape(3, 4),))
add("pad_sequence", lambda x, y: nn.utils.rnn.pad_sequence([x, y]), (X, Y), {0: {0: "n"}, 1: {0: "m"}}, [(Y, X)])
add("isreal", torch.isreal, (X,), B, [(Y,)])
add("isfinite", torch.isfinite, (X,), B, [(Y,)])
add("isposinf", torch.isposinf, (X,), B, [(Y,)])
add("isneginf", torch.isneginf, (X,), B, [(Y,)])
add("bool_power", lambda x: (x > 0) ** 2, (X,), B, [(Y,)])
add("bool_power_number", lambda x: -(0.5 ** (x > 0)), (X,), B, [(Y,)])
add("power_of_bool", lambda x: -(0.5 ** (x > 0)), (X,), B, [(Y,)])
add("bool_power_bool", lambda x: (x > 0) ** (x > 0.5), (X,), B, [(Y,)])
add("real", lambda x: torch.real(x) * 2, (X,), B, [(Y,)])
add("squeeze_of_two", lambda x: x.squeeze((0, 2)), (rand(1, 3, 1, 4),))
add("ravel", torch.ravel, (X,), B, [(Y,)])
add("sum_to_size", lambda x: x.sum_to_size(1, 4), (X,), B, [(Y,)])
add("narrow_copy", lambda x: torch.narrow_copy(x, 1, 0, 2), (X,), B, [(Y,)])
add("index_fill_bfloat", lambda x: x.index_fill(0, torch.tensor([0]), 1.0), (X.half(),), B, [(Y.half(),)])
add(
    "embedding_bag",
    nn.EmbeddingBag(10, 5, mode="sum", include_last_offset=True),
    (torch.arange(1, 8), torch.tensor([0, 2, 5, 6])),
)
add("dequantize_input", lambda x: torch.dequantize(torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)), (X,), B, [(Y,)])
add("dropout", lambda x: F.dropout(x, 0.5, training=False) + 1, (X,), B, [(Y,)])
add("packed", lambda x: torch.diff(x, dim=1), (X,), B, [(Y,)])
add("arange_of_floats", lambda x: torch.arange(0.0, x.size(0), 0.5), (X,), B, [(Y,)])

_DEEP = nn.Sequential(nn.Linear(4, 4))
for _ in range(150):
    _DEEP = nn.Sequential(_DEEP)
add("deep", _DEEP, (X,), B, [(Y,)])
