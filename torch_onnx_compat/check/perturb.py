"""Modes in which eager torch rounds otherwise, or breaks ties otherwise.

Two programs that compute the same differ by the rounding of every operation, and by the order in which equal values are
sorted. What eager torch's own outputs do when its operations round otherwise says how far a right file may be off, at
every single value. A run in another element type says less: it may take another branch, or another kernel.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from torch_onnx_compat.backends.internals.modes import DispatchMode

_EXACT = """
abs amax amin aminmax arange argmax argmin broadcast_to bucketize cat ceil clamp clamp_max clamp_min clone
constant_pad_nd contiguous copy copysign cummax cummin detach diag diagonal dropout embedding empty empty_like
empty_strided expand eye fill fill_diagonal flip floor full full_like gather hardtanh im2col index index_copy index_fill
index_put index_select isin item kthvalue leaky_relu lift lift_fresh masked_fill masked_scatter masked_select max
max_pool1d max_pool2d max_pool2d_with_indices max_pool3d max_pool3d_with_indices max_unpool2d maximum median min minimum
mode native_dropout neg new_empty new_full new_ones new_zeros nan_to_num nms nonzero one_hot ones ones_like permute
pixel_shuffle pixel_unshuffle put rand randint randn randperm reflection_pad1d reflection_pad2d reflection_pad3d relu
repeat repeat_interleave replication_pad1d replication_pad2d replication_pad3d roll round scalar_tensor scatter
searchsorted select_scatter set sgn sign slice_scatter sort split stack take threshold threshold_backward tile to topk
tril triu trunc unfold unfold_copy unique upsample_nearest1d upsample_nearest2d upsample_nearest3d view_as_complex
view_as_real where zero zeros zeros_like _cat _copy_from _local_scalar_dense _reshape_alias _reshape_copy _to_copy
_unique2 _unsafe_index _unsafe_index_put _unsafe_view _upsample_nearest_exact1d _upsample_nearest_exact2d
_upsample_nearest_exact3d
"""
_EXACT_NAMES = frozenset(_EXACT.split())
"""Operators whose results are exact: they move, choose or compare values, or round them to whole numbers."""

_SUMS = """
addbmm addcdiv addcmul addmm addmv addr baddbmm bmm col2im conv1d conv2d conv3d convolution cumprod cumsum dot einsum
embedding_bag grid_sampler_2d grid_sampler_3d group_norm instance_norm layer_norm lerp linalg_cross linear
logcumsumexp logsumexp lstm matmul mean mkldnn_rnn_layer mm mv nansum native_batch_norm native_group_norm
native_layer_norm norm prod roi_align scaled_dot_product_attention std std_mean sum trace var var_mean vdot
_cdist_forward _convolution _embedding_bag _embedding_bag_forward_only _euclidean_dist _fft_c2c _fft_c2r _fft_r2c
_log_softmax _native_batch_norm_legit _native_batch_norm_legit_no_training
_scaled_dot_product_flash_attention_for_cpu linalg_vector_norm adaptive_avg_pool1d avg_pool2d avg_pool3d
_adaptive_avg_pool2d _adaptive_avg_pool3d upsample_linear1d upsample_bilinear2d upsample_bicubic2d
upsample_trilinear3d _upsample_bilinear2d_aa _upsample_bicubic2d_aa
"""
_SUM_NAMES = frozenset(_SUMS.split())
"""Operators that add up many terms: their rounding is relative to the terms, which may cancel, not to the result."""

_FACTORISATIONS = """
cholesky cholesky_inverse cholesky_solve geqrf linalg_cholesky_ex linalg_eig linalg_householder_product linalg_inv_ex
linalg_ldl_factor_ex linalg_ldl_solve linalg_lstsq linalg_lu linalg_lu_factor_ex linalg_lu_solve linalg_matrix_exp
linalg_qr linalg_solve_triangular ormqr triangular_solve _linalg_det _linalg_eigh _linalg_eigvals _linalg_slogdet
_linalg_solve_ex _linalg_svd
"""
_FACTORISATION_NAMES = frozenset(_FACTORISATIONS.split())
"""Operators whose results are exact for a matrix that differs by a rounding of its largest element, wherever that is.

Source: Higham, Accuracy and Stability of Numerical Algorithms, on normwise backward stability.
"""

_HALVES: dict[str, Callable[[Tensor], Tensor]] = {"sigmoid": torch.ones_like, "silu": torch.abs}
"""Operators that engines compute as 1/2 plus something, as (1 + tanh(x / 2)) / 2, with what they multiply that by:
where the sigmoid is small, the two cancel, and its rounding is that of 1/2. A detector's scores are such values."""

MOST_OF_HALVES = 2.0
"""Largest change of a float16 or bfloat16, in units of its last place: sums of halves are added up in float32."""

PLACES = 256
"""Change of the cells that a resized picture is made of: a place at cell 200 has eight bits less for its weights.

Of longer pictures, their length: the weights at cell 600 are differences of numbers near 600."""

TERMS = 4.0
"""Change of the terms of a sum, in changes of a result: partial sums are rounded one after the other."""

POOL = 2**20
"""How many changes are drawn for a long run: to draw takes longer than all else, so parts of tensors take them in turn.
"""

DRAWN = POOL // 8
"""How many are drawn for the values themselves before that: a small model has fewer values in all."""

PART = 2**16
"""Values that are changed at a time."""

_MAX_POOLS: dict[int, Callable[..., Tensor]] = {
    1: functional.max_pool1d,
    2: functional.max_pool2d,
    3: functional.max_pool3d,
}

_INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}


class RoundOtherwise(DispatchMode):
    """While active, every operation that rounds has results that are off by a rounding or so.

    Values of few digits, such as whole numbers, are exact in both programs and stay as they are.

    Args:
        step: Largest change, in units of the element type's last place.
        seed: Of the changes.
    """

    def __init__(self, step: float, seed: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call,unused-ignore]
        self._step = step
        self._generator = torch.Generator().manual_seed(seed)
        self._pools: dict[tuple[torch.dtype, float], Tensor] = {}
        """By element type and factor of the change: what values are multiplied by."""
        self._drawn = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, written = _base_name(func), func._schema.is_mutable
        if name in _EXACT_NAMES or _is_view(func):
            return func(*args, **(kwargs or {}))
        if (name in _SUM_NAMES or "_backward" in name) and not written:  # a backward pass adds up what was shared
            if "upsample" in name or "grid_sampler" in name:
                args = [self._change_cells(args[0], _places(args)), *args[1:]]
            else:
                has_table = "_fft_" in name
                args = [self._change(a, TERMS, inexact=has_table) if isinstance(a, Tensor) else a for a in args]
        if name in _FACTORISATION_NAMES and not written:
            args = [self._change_matrix(a) if isinstance(a, Tensor) else a for a in args]
        rounded = self._halves(args[0], _HALVES[name]) if name in _HALVES else None
        result = func(*args, **(kwargs or {}))
        if isinstance(result, Tensor):
            changed = self._change(result)
            if rounded is not None:
                changed = torch.where(_has_few_digits(result), result, rounded(changed))
            return result.copy_(changed) if written else changed
        if isinstance(result, (tuple, list)) and not written:
            return type(result)(self._change(r) if isinstance(r, Tensor) else r for r in result)
        return result

    def _change_matrix(self, matrix: Tensor) -> Tensor:
        """Changes every element by a rounding of the largest one of its matrix."""
        if matrix.dim() < 2 or not matrix.numel():
            return matrix
        if matrix.is_complex():
            parts = [self._change_matrix(part.contiguous()) for part in (matrix.real, matrix.imag)]
            return torch.complex(*parts)
        if not _is_plain(matrix):
            return matrix
        noise = 2 * torch.rand(matrix.shape, generator=self._generator, dtype=matrix.dtype) - 1
        largest = matrix.abs().amax((-2, -1), keepdim=True) * torch.finfo(matrix.dtype).eps * self._step * TERMS
        changed = matrix + noise * largest
        return torch.where(changed.isfinite(), changed, matrix)

    def _change_cells(self, x: Tensor, places: float) -> Tensor:
        """Changes every cell by a rounding of the largest one beside it, whose weight is off by one of its place."""
        if not _is_plain(x) or x.dim() - 2 not in _MAX_POOLS or not x.numel():
            return self._change(x, places)
        wide = torch.promote_types(x.dtype, torch.float32)
        noise = 2 * torch.rand(x.shape, generator=self._generator, dtype=wide) - 1
        near = _MAX_POOLS[x.dim() - 2](x.to(wide).abs(), 3, 1, 1)
        changed = (x + noise * near * (torch.finfo(x.dtype).eps * self._step * places)).to(x.dtype)
        return torch.where(_has_few_digits(x) | ~changed.isfinite(), x, changed)

    def _halves(self, x: Tensor, factor: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor] | None:
        """Adds a rounding of 1/2 to the result of an operator on `x`; None where its element type is not known."""
        if not _is_plain(x):
            return None
        wide = torch.promote_types(x.dtype, torch.float32)
        noise = torch.rand(x.shape, generator=self._generator, dtype=wide) - 0.5
        most = (noise * (torch.finfo(wide).eps * self._step) * factor(x.to(wide))).nan_to_num(0.0, 0.0, 0.0)
        return lambda result: (result.to(wide) + most).to(result.dtype)

    def _change(self, tensor: Tensor, factor: float = 1.0, *, inexact: bool = False) -> Tensor:
        """Changes the values; those of few digits only where what they are multiplied by is inexact, as sines are."""
        if tensor.is_complex() and tensor.numel():
            parts = torch.view_as_real(tensor.resolve_conj()).contiguous()
            return torch.view_as_complex(self._change(parts, factor, inexact=inexact))
        if not _is_plain(tensor):
            return tensor
        if 0 in tensor.stride() and tensor.numel() > 1:  # expanded: what is one number in memory stays one
            once = tuple(slice(0, 1) if stride == 0 else slice(None) for stride in tensor.stride())
            return self._change_dense(tensor[once], factor, inexact).expand(tensor.shape)
        return self._change_dense(tensor, factor, inexact)

    def _change_dense(self, tensor: Tensor, factor: float, inexact: bool) -> Tensor:
        result = torch.empty_like(tensor)
        if result.stride() != tensor.stride():  # it has gaps, or several places in one
            tensor = tensor.contiguous()
            result = torch.empty_like(tensor)
        self._fill(_in_memory(result), _in_memory(tensor), factor, inexact)
        return result

    def _fill(self, result: Tensor, values: Tensor, factor: float, inexact: bool) -> None:
        """Writes the changed values, part by part: a part stays in the processor's cache."""
        most = torch.finfo(values.dtype).max
        for start in range(0, len(values), PART):
            part, out = values[start : start + PART], result[start : start + PART]
            changed = part * self._factors(values.dtype, factor, len(part))
            changed = changed.clamp_(-most, most).to(part.dtype)
            # Infinities have few digits, and stay either way.
            torch.where(part.isinf() if inexact else _has_few_digits(part), part, changed, out=out)

    def _factors(self, dtype: torch.dtype, factor: float, count: int) -> Tensor:
        """What some values are multiplied by."""
        if self._drawn + count <= DRAWN:
            self._drawn += count
            return self._draw(dtype, factor, count)
        if (dtype, factor) not in self._pools:
            self._pools[dtype, factor] = self._draw(dtype, factor, POOL)
        begin = int(torch.randint(POOL - count + 1, (), generator=self._generator))
        return self._pools[dtype, factor][begin : begin + count]

    def _draw(self, dtype: torch.dtype, factor: float, count: int) -> Tensor:
        wide = torch.promote_types(dtype, torch.float32)
        noise = torch.rand(count, generator=self._generator, dtype=wide).mul_(2).sub_(1)
        step = self._step if wide is dtype else min(self._step, MOST_OF_HALVES)
        return noise.mul_(torch.finfo(dtype).eps * step * factor).add_(1)


def _in_memory(tensor: Tensor) -> Tensor:
    """The values of a tensor without gaps, in the order in which they lie in memory."""
    return tensor.as_strided((tensor.numel(),), (1,))


def _places(args: Sequence[Any]) -> float:
    """The length of the longest axis that is resized, before or after."""
    after = args[1] if len(args) > 1 and isinstance(args[1], (list, tuple)) else ()
    return float(max(PLACES, *args[0].shape[2:], *(size for size in after if isinstance(size, int))))


def _is_plain(tensor: Tensor) -> bool:
    """Whether a tensor holds real numbers that can be changed one by one."""
    if tensor.dtype not in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        return False
    return tensor.layout is torch.strided and not tensor.is_mkldnn and tensor.device.type == "cpu"


def rounds(func: Any) -> bool:
    """Whether an operator computes values that it rounds, and does not only move or choose them."""
    return _base_name(func) not in _EXACT_NAMES and not _is_view(func)


@functools.cache
def _is_view(func: Any) -> bool:
    """Whether the results share memory with an argument that is not written to."""
    return any(r.alias_info is not None and not r.alias_info.is_write for r in func._schema.returns)


@functools.cache
def _base_name(func: Any) -> str:
    """``exp`` of ``aten::exp_.out``."""
    name = str(func._schema.name).partition("::")[2]
    return name.rstrip("_") if not name.startswith("__") else name


def _has_few_digits(tensor: Tensor) -> Tensor:
    """Marks the values whose last digits, in the second half of the mantissa, are zero."""
    bits = {torch.float16: 5, torch.bfloat16: 2, torch.float32: 11, torch.float64: 26}[tensor.dtype]
    return tensor.contiguous().view(_INTEGERS[tensor.element_size()]) & ((1 << bits) - 1) == 0


class BreakTies(DispatchMode):
    """While active, operators that sort take equal values in the order of their places, or in the opposite order.

    torch promises no order for equal values there. Where it promises one, as in argmax, it is kept.

    Args:
        lowest_first: Whether the value at the lowest place comes first.
    """

    def __init__(self, *, lowest_first: bool) -> None:
        super().__init__()  # type: ignore[no-untyped-call,unused-ignore]
        self._lowest_first = lowest_first
        self.has_ties = False
        """Whether there were any."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, kwargs = str(func._schema.name), kwargs or {}
        if name in _SORTING and not func._schema.is_mutable:
            bound = _bind(func, args, kwargs)
            dim, falls = _SORTING[name](bound)
            ranks = None if dim is None or bound.get("stable") else self._rank(bound["self"], dim, falls)
            if ranks is not None:
                return _select(bound["self"], dim, func(ranks, *args[1:], **kwargs))
        elif name == "torchvision::nms":
            bound = _bind(func, args, kwargs)
            ranks = self._rank(bound["scores"], 0, True)
            if ranks is not None:
                return func(bound["dets"], ranks.to(bound["scores"].dtype), bound["iou_threshold"])
        return func(*args, **kwargs)

    def _rank(self, values: Tensor, dim: int, falls: bool) -> Tensor | None:
        """The place of each value among the others, without ties; None where there are none to break."""
        if not values.dim() or values.shape[dim] < 2 or values.is_complex():
            return None
        ordered = values.sort(dim=dim, stable=True).values
        one, other = ordered.narrow(dim, 0, values.shape[dim] - 1), ordered.narrow(dim, 1, values.shape[dim] - 1)
        if not bool((one == other).any()):
            return None
        self.has_ties = True
        # Where large values come first, the lowest place must have the highest rank of its equals.
        turned = self._lowest_first == falls
        source = values.flip(dim) if turned else values
        order = source.argsort(dim=dim, stable=True)
        places = torch.arange(values.shape[dim]).view(
            [-1 if d == dim % values.dim() else 1 for d in range(values.dim())]
        )
        ranks = torch.empty_like(order).scatter_(dim, order, places.expand_as(order))
        return ranks.flip(dim) if turned else ranks


def _select(values: Tensor, dim: int, ranked: Any) -> Any:
    """The result of an operator on values, from its result (ranks, indices) on their ranks."""
    indices = ranked[1]
    if indices.dim() == values.dim():
        return type(ranked)((values.gather(dim, indices), indices))
    return type(ranked)((values.gather(dim, indices.unsqueeze(dim)).squeeze(dim), indices))


def _bind(func: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    """Arguments by name, defaults of the schema included."""
    bound = {a.name: a.default_value for a in func._schema.arguments if a.has_default_value()}
    bound.update(zip((a.name for a in func._schema.arguments), args, strict=False))
    return {**bound, **kwargs}


_SORTING: dict[str, Any] = {
    "aten::topk": lambda b: (b["dim"], b["largest"]),
    "aten::sort": lambda b: (b["dim"], b["descending"]),
    "aten::kthvalue": lambda b: (b["dim"], False),
    "aten::median": lambda b: (b.get("dim"), False),
}
"""Operators that give indices of sorted values, each with the axis and whether large values come first."""
