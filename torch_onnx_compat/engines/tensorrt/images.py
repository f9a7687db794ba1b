"""Layers of images: convolution, pooling, resizing and sampling."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from torch_onnx_compat.engines.tensorrt.layers import Call, layer

_SAMPLE = {"LINEAR": "bilinear", "NEAREST": "nearest", "CUBIC": "bicubic"}
_OUTSIDE = {"FILL": "zeros", "CLAMP": "border", "REFLECT": "reflection"}


def _pads(call: Call, sizes: Sequence[int], window: Sequence[int], stride: Sequence[int]) -> list[tuple[int, int]]:
    """What is added before and after along each axis.

    Args:
        call: The layer.
        sizes: Sizes of the input.
        window: Sizes of the window, with its gaps.
        stride: Steps of the window.
    """
    mode = call.get("padding_mode")
    if mode.startswith("EXPLICIT"):
        return list(zip(call.get("pre_padding"), call.get("post_padding"), strict=True))
    found = []
    for size, width, step in zip(sizes, window, stride, strict=True):
        total = max((math.ceil(size / step) - 1) * step + width - size, 0)
        less, more = total // 2, total - total // 2
        found.append((less, more) if mode == "SAME_UPPER" else (more, less))
    return found


def _flat(pads: Sequence[tuple[int, int]]) -> list[int]:
    """Pads in the order of torch's pad."""
    return [number for pair in reversed(pads) for number in pair]


def _kernel(call: Call, per_group: int, groups: int, *, turned: bool) -> Tensor:
    """The kernel: the second input, or weights whose shape follows from the layer's numbers."""
    given = call.optional(1)
    if given is not None:
        return given
    maps, sizes = call.get("num_output_maps"), call.get("kernel_size_nd")
    shape = (per_group * groups, maps // groups, *sizes) if turned else (maps, per_group, *sizes)
    found = call.weights("kernel", shape)
    if found is None:
        raise call.not_known("its kernel cannot be read")
    return found


@layer("CONVOLUTION")
def convolve(call: Call) -> Tensor:
    """A convolution in one to three dimensions, in groups."""
    x, groups, stride, gaps = call.input(0), call.get("num_groups"), call.get("stride_nd"), call.get("dilation_nd")
    kernel = _kernel(call, x.shape[1] // groups, groups, turned=False)
    window = [(size - 1) * gap + 1 for size, gap in zip(kernel.shape[2:], gaps, strict=True)]
    if call.get("padding_mode") == "EXPLICIT_ROUND_UP":
        raise call.not_known("rounding up")
    x = functional.pad(x, _flat(_pads(call, x.shape[2:], window, stride)))
    bias = _bias(call, kernel.shape[0])
    run = {1: functional.conv1d, 2: functional.conv2d, 3: functional.conv3d}[len(stride)]
    return run(x, kernel, bias, stride, 0, gaps, groups)


def _bias(call: Call, size: int) -> Tensor | None:
    given = call.optional(2)
    return call.weights("bias", (size,)) if given is None else given


@layer("DECONVOLUTION")
def deconvolve(call: Call) -> Tensor:
    """A transposed convolution, from which the padding is cut off."""
    x, groups, stride, gaps = call.input(0), call.get("num_groups"), call.get("stride_nd"), call.get("dilation_nd")
    if not call.get("padding_mode").startswith("EXPLICIT"):
        raise call.not_known(f"padding mode {call.get('padding_mode')}")
    kernel = _kernel(call, x.shape[1] // groups, groups, turned=True)
    run = {1: functional.conv_transpose1d, 2: functional.conv_transpose2d, 3: functional.conv_transpose3d}[len(stride)]
    full = run(x, kernel, None, stride, 0, 0, groups, gaps)
    pads = list(zip(call.get("pre_padding"), call.get("post_padding"), strict=True))
    found = functional.pad(full, [-number for number in _flat(pads)])
    bias = _bias(call, found.shape[1])
    return found if bias is None else found + bias.reshape(1, -1, *[1] * len(stride))


@layer("POOLING")
def pool(call: Call) -> Tensor:
    """The largest value or the mean of windows; a mean is over the input, with its padding unless excluded."""
    x, window, stride, kind = call.input(0), call.get("window_size_nd"), call.get("stride_nd"), call.get("type")
    if kind not in ("MAX", "AVERAGE"):
        raise call.not_known(f"type {kind}")
    rank = len(window)
    pads = _pads(call, x.shape[-rank:], window, stride)
    more = []
    for size, (before, after), width, step in zip(x.shape[-rank:], pads, window, stride, strict=True):
        free = size + before + after - width
        count = (math.ceil if call.get("padding_mode") == "EXPLICIT_ROUND_UP" else math.floor)(free / step) + 1
        more.append((0, max((count - 1) * step + width - size - before - after, 0)))
    if kind == "MAX":
        return _windows(functional.pad(x, _flat(pads), value=-math.inf), more, window, stride, -math.inf).amax(-1)
    inner = torch.ones_like(x)
    outer = 0.0 if call.get("average_count_excludes_padding") else 1.0
    counted = _windows(functional.pad(inner, _flat(pads), value=outer), more, window, stride, 0.0).sum(-1)
    return _windows(functional.pad(x, _flat(pads)), more, window, stride, 0.0).sum(-1) / counted


def _windows(
    x: Tensor, more: Sequence[tuple[int, int]], window: Sequence[int], stride: Sequence[int], value: float
) -> Tensor:
    """The values of each window along a new last axis; `value` stands beyond the padding."""
    x = functional.pad(x, _flat(more), value=value)
    for axis, (width, step) in enumerate(zip(window, stride, strict=True), x.dim() - len(window)):
        x = x.unfold(axis, width, step)
    return x.flatten(-len(window))


@layer("RESIZE")
def resize(call: Call) -> Tensor:
    """The input at other sizes, axis by axis."""
    x, mode = call.input(0), call.get("resize_mode")
    if mode not in ("NEAREST", "LINEAR", "CUBIC"):
        raise call.not_known(f"mode {mode}")
    for axis, size in enumerate(_new_sizes(call, x)):
        if size != x.shape[axis]:
            weights = _resampling(call, x.shape[axis], size, mode)
            x = torch.tensordot(x, weights, dims=([axis], [1])).movedim(-1, axis)
    return x


def _new_sizes(call: Call, x: Tensor) -> list[int]:
    if call.optional(1) is not None or call.layer.attributes.get("shape"):
        return call.numbers(1, "shape")
    sizes = []
    for size, scale in zip(x.shape, call.get("scales"), strict=True):
        if abs(size * scale - round(size * scale)) > 1e-4:
            raise call.not_known(f"whether size {size} times {scale} is placed by the scale or by the sizes")
        sizes.append(round(size * scale))
    return sizes


def _resampling(call: Call, size: int, new: int, mode: str) -> Tensor:
    """The share of each of `size` values in each of `new`, (new, size)."""
    places = _places(call, size, new)
    if mode == "NEAREST":
        return functional.one_hot(_rounded(call, places).clamp(0, size - 1), size).double()
    low = places.floor()
    part = places - low
    if mode == "LINEAR":
        shares = [(0, 1 - part), (1, part)]
    else:
        a = float(call.get("cubic_coeff"))
        near, far = _cubic_near, _cubic_far
        shares = [(-1, far(1 + part, a)), (0, near(part, a)), (1, near(1 - part, a)), (2, far(2 - part, a))]
    weights = torch.zeros(new, size, dtype=torch.float64)
    rows = torch.arange(new)
    for shift, share in shares:
        column = low.long() + shift
        if mode == "CUBIC" and call.get("exclude_outside"):
            share = torch.where((column < 0) | (column >= size), torch.zeros_like(share), share)
        weights[rows, column.clamp(0, size - 1)] += share
    return weights / weights.sum(1, keepdim=True)


def _places(call: Call, size: int, new: int) -> Tensor:
    """Where in the input each new value lies."""
    places = torch.arange(new, dtype=torch.float64)
    how = call.get("coordinate_transformation")
    if new == 1 and call.get("selector_for_single_pixel") == "UPPER":
        return torch.zeros(1, dtype=torch.float64)
    if how == "ALIGN_CORNERS":
        return places * (size - 1) / max(new - 1, 1)
    if how == "ASYMMETRIC":
        return places * size / new
    if how == "HALF_PIXEL":
        return (places + 0.5) * size / new - 0.5
    raise call.not_known(f"coordinates {how}")


def _rounded(call: Call, places: Tensor) -> Tensor:
    ways: dict[str, Callable[[Tensor], Tensor]] = {
        "HALF_UP": lambda x: (x + 0.5).floor(),
        "HALF_DOWN": lambda x: (x - 0.5).ceil(),
        "FLOOR": torch.floor,
        "CEIL": torch.ceil,
    }
    # A quotient such as 3 * 7 / 3 may come out just below a whole number or a half.
    snapped = torch.where((places * 2 - (places * 2).round()).abs() < 1e-9, (places * 2).round() / 2, places)
    return ways[call.get("nearest_rounding")](snapped).long()


def _cubic_near(d: Tensor, a: float) -> Tensor:
    return ((a + 2) * d - (a + 3)) * d * d + 1


def _cubic_far(d: Tensor, a: float) -> Tensor:
    return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a


@layer("GRID_SAMPLE")
def sample(call: Call) -> Tensor:
    """Values at places between -1 and 1."""
    mode, outside = call.get("interpolation_mode"), call.get("sample_mode")
    if mode not in _SAMPLE or outside not in _OUTSIDE:
        raise call.not_known(f"{mode} with {outside}")
    x, grid = call.input(0), call.input(1)
    if x.dim() == 5 and mode == "CUBIC":
        raise call.not_known("cubic sampling of volumes")
    return functional.grid_sample(x, grid, _SAMPLE[mode], _OUTSIDE[outside], call.get("align_corners"))


@layer("LRN")
def respond(call: Call) -> Tensor:
    """Divides by (k + alpha * sum of squares / window) ** beta, the sum over neighbouring channels."""
    x, width = call.input(0), call.get("window_size")
    return functional.local_response_norm(x, width, call.get("alpha"), call.get("beta"), call.get("k"))
