"""Facts of operators on images: convolutions, pools, pads and resizing.

* after, of a Conv or AveragePool: Pad where its image is the result of a Pad by zeros that no other node reads, else
  other;
* group, of a convolution: one, depthwise or some;
* scales, of a Resize, whose batch and channels may vary: whole; exact where they are fractions that give whole sizes,
  and where the sizes are given but not known; else rounded;
* nearest_mode, of a Resize: unused where the mode is not nearest, so that the attribute has no meaning;
* cells, of a Resize of mode nearest, asymmetric and by floor, by a known scale: by inverse where other cells are read
  if one multiplies by the inverse of the scale instead of dividing by it, in float32; else by any way;
* rows and columns, of a Resize: one where the axis after the channels, or the last, has a single cell; more where it
  has several; any where it varies, so that it may have one;
* last_window, of a pool: inside, or with ceil_mode beyond where it reaches past the end, padding where it starts on the
  padding; of an axis that varies the last of these that some size has, and unknown where that is padding;
* pads_sign, of a Pad: negative where it crops, else positive;
* padded, of a Pad: nothing; image where both ends of each axis after the first two are padded; sides where only some of
  these are; channels where an end of the first two axes is;
* axes, of a Col2Im: how many the image has;
* groups, of an InstanceNormalization: yes where it normalizes groups of channels: a Reshape to (0, groups, -1) stands
  before it and one back after it, it has no scale and bias of its own, and its epsilon is written out; else no.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from torch_onnx_compat.graph.constants import constant_tensor
from torch_onnx_compat.graph.facts.origin import batch
from torch_onnx_compat.graph.padding import is_by_zero

_LONG = 4096
"""Cells of an axis that varies, for which it is tried how they are found."""


def _conv(node: ir.Node) -> dict[str, Any]:
    return {**_convolution(node), **_after_pad(node)}


def _average(node: ir.Node) -> dict[str, Any]:
    return {**_last_window(node), **_after_pad(node)}


def _after_pad(node: ir.Node) -> dict[str, Any]:
    x = node.inputs[0]
    pad = x.producer() if x is not None and len(x.uses()) == 1 else None
    return {"after": "Pad" if pad is not None and pad.op_type == "Pad" and is_by_zero(pad) else "other"}


def _convolution(node: ir.Node) -> dict[str, Any]:
    group = node.attributes["group"].as_int() if "group" in node.attributes else 1
    x = node.inputs[0]
    channels = x.shape[1] if x is not None and x.shape is not None and len(x.shape) > 1 else None
    return {"group": "one" if group == 1 else "depthwise" if group == channels else "some"}


def _last_window(node: ir.Node) -> dict[str, Any]:
    x = node.inputs[0]
    if "ceil_mode" not in node.attributes or not node.attributes["ceil_mode"].value:
        return {"last_window": "inside"}
    kernel: Any = node.attributes["kernel_shape"].value
    rank = len(kernel)
    shape = [None] * (rank + 2) if x is None or x.shape is None else x.shape
    ones, zeros = [1] * rank, [0] * 2 * rank
    strides, dilations, pads = (
        node.attributes[name].value if name in node.attributes else default
        for name, default in (("strides", ones), ("dilations", ones), ("pads", zeros))
    )
    found = set()
    for axis, (k, s, d) in enumerate(zip(kernel, strides, dilations, strict=True)):
        size, begin, end = shape[axis + 2], pads[axis], pads[axis + rank]
        extent = d * (k - 1) + 1
        if not isinstance(size, int):
            # The last window starts at most s - 1 behind size + begin + end - extent.
            if s > 1 and end + s - extent >= 1:
                return {}
            found.add("inside" if s == 1 else "beyond")
            continue
        room = size + begin + end - extent
        last = -(-room // s) * s
        found.add("inside" if room % s == 0 else "padding" if last >= size + begin else "beyond")
    return {"last_window": min(found, key=("padding", "beyond", "inside").index)}


def _pads(node: ir.Node) -> dict[str, Any]:
    tensor = constant_tensor(node.inputs[1]) if len(node.inputs) > 1 else None
    if tensor is None:
        return {}
    pads = tensor.numpy()
    axes = constant_tensor(node.inputs[3]) if len(node.inputs) > 3 else None
    x = node.inputs[0]
    rank = len(x.shape) if x is not None and x.shape is not None else len(pads) // 2
    places = np.arange(rank) if axes is None else axes.numpy() % rank
    both = np.concatenate([places, places])
    of_image = pads[both >= 2]
    all_ends = of_image.all() and len(of_image) == 2 * (rank - 2)
    image = "image" if all_ends else "sides" if pads.any() else "nothing"
    return {
        "pads_sign": "negative" if (pads < 0).any() else "positive",
        "padded": "channels" if pads[both < 2].any() else image,
    }


def _resize(node: ir.Node) -> dict[str, Any]:
    shape = node.inputs[0].shape if node.inputs[0] is not None else None
    mode = node.attributes["mode"].as_string() if "mode" in node.attributes else "nearest"
    unused = {} if mode == "nearest" else {"nearest_mode": "unused"}
    found = {"rows": _count(node.inputs[0], 2)} if shape is None or len(shape) > 2 else {"rows": "more"}
    found["columns"] = _count(node.inputs[0], -1)
    return {**found, **unused, **_scales(node), **_nearest_cells(node)}


def _nearest_cells(node: ir.Node) -> dict[str, str]:
    asked = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    if any(name not in node.attributes or node.attributes[name].as_string() != kind for name, kind in asked.items()):
        return {"cells": "by any way"}
    before, after = (_sizes(value) for value in (node.inputs[0], node.outputs[0]))
    tensor = constant_tensor(node.inputs[2]) if len(node.inputs) > 2 else None
    if tensor is not None and tensor.size:
        given = tensor.numpy()
        after = after if after.size else np.full(len(given), np.nan)
    else:
        given = after / before if before.size == after.size else np.empty(0)  # a rank may be unknown
    for scale, size in zip(given[2:].astype(np.float32), after[2:], strict=False):
        numbers = np.arange(_LONG if np.isnan(size) else size, dtype=np.float32)
        if not np.isnan(scale) and (np.floor(numbers / scale) != np.floor(numbers * (np.float32(1) / scale))).any():
            return {"cells": "by inverse"}
    return {"cells": "by any way"}


def _count(value: ir.Value | None, axis: int) -> str:
    size = value.shape[axis] if value is not None and value.shape is not None else None
    if isinstance(size, int):
        return "one" if size == 1 else "more"
    return "more" if value is not None and has_two(value, axis) else "any"


def has_two(value: ir.Value, axis: int) -> bool:
    """Whether an image has two rows or columns at least, as a single one was doubled: Concat(x, x[: max(2 - n, 0)])."""
    joined = value.producer()
    while joined is not None and joined.op_type == "Concat" and len(joined.inputs) == 2:
        image, more = joined.inputs
        cut = more.producer() if more is not None else None
        if image is None or cut is None or cut.op_type != "Slice" or cut.inputs[0] is not image:
            return False
        ends = cut.inputs[2].producer() if cut.inputs[2] is not None else None
        if ends is None or ends.op_type != "Max":
            return False
        if joined.attributes["axis"].as_int() == axis % (4 if value.shape is None else len(value.shape)):
            return True
        joined = image.producer()
    return False


def _scales(node: ir.Node) -> dict[str, Any]:
    before, after = (_sizes(value) for value in (node.inputs[0], node.outputs[0]))
    tensor = constant_tensor(node.inputs[2]) if len(node.inputs) > 2 else None
    if tensor is not None and tensor.size:
        scales = tensor.numpy().astype(float)
    elif before.size and after.size:
        scales = after / before
        scales[:2][np.isnan(scales[:2])] = 1  # nobody resizes a batch
        if np.isnan(scales).any():
            return {"scales": "exact"}
    else:
        return {}
    if (scales == scales.round()).all():
        return {"scales": "whole"}
    before[:2][np.isnan(before[:2])] = 1
    if len(before) != len(scales) or np.isnan(before * scales).any():
        return {}
    sizes = before * scales
    return {"scales": "exact" if np.allclose(sizes, sizes.round(), atol=1e-4) else "rounded"}


def _sizes(value: ir.Value | None) -> npt.NDArray[np.float64]:
    """The sizes of a value's axes; NaN for each that varies or is 0, none at all where the rank is unknown."""
    shape = value.shape if value is not None and value.shape is not None else ()
    return np.array([axis if isinstance(axis, int) and axis else np.nan for axis in shape], float)


def _image_axes(node: ir.Node) -> dict[str, Any]:
    size = node.inputs[1].shape if node.inputs[1] is not None else None
    return {"axes": size[0]} if size is not None and isinstance(size[0], int) else {}


def _groups(node: ir.Node) -> dict[str, Any]:
    before = node.inputs[0].producer() if node.inputs[0] is not None else None
    after = [use.node.op_type for use in node.outputs[0].uses()]
    if before is None or before.op_type != "Reshape" or after != ["Reshape"]:
        return {"groups": "no"}
    shape, scale, bias = (constant_tensor(value) for value in (before.inputs[1], *node.inputs[1:3]))
    if shape is None or scale is None or bias is None or shape.size != 3:
        return {"groups": "no"}
    plain = (scale.numpy() == 1).all() and not bias.numpy().any() and "epsilon" in node.attributes
    return {"groups": "yes" if plain and shape.numpy()[0] == 0 and shape.numpy()[2] == -1 else "no"}


IMAGE_FACTS: Mapping[str, Callable[[ir.Node], dict[str, Any]]] = {
    "AveragePool": _average,
    "Conv": _conv,
    "ConvTranspose": _convolution,
    "MaxPool": _last_window,
    "Col2Im": _image_axes,
    "InstanceNormalization": _groups,
    "Pad": _pads,
    "Resize": _resize,
    "Transpose": batch,
}
"""The function that finds an operator's facts, by operator."""
