"""Deformable convolution by samples of the image's grid, and by the operator that ONNX has from opset 19 on.

Source: https://docs.pytorch.org/vision/stable/generated/torchvision.ops.deform_conv2d.html
"""

from typing import Any

import torch

from torch_onnx_compat import Exactness, Ops, Value, decline, symbolic


@symbolic(
    "torchvision::deform_conv2d",
    needed_on=("torchscript", "dynamo"),
    opset=(16, 99),
    exactness=Exactness.ROUNDING,
)
def deform_conv2d(
    op: Ops,
    input: Value,
    weight: Value,
    offset: Value,
    mask: Value,
    bias: Value,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    dilation_h: int,
    dilation_w: int,
    groups: int,
    offset_groups: int,
    use_mask: bool,
) -> Value:
    """Convolution that reads beside its grid, by offsets (N, 2 G K, P, Q), into (N, O, P, Q).

    Declines: channels or a kernel whose size varies.

    Math:   tap k of the kernel reads cell (p stride - padding + k dilation + offset) by bilinear interpolation, with
            zeros outside; the taps are then an axis that one convolution, with a kernel of their number, sums up.
    Schema: deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, SymInt
            stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, SymInt
            offset_groups, bool use_mask) -> Tensor
    Source: https://docs.pytorch.org/vision/stable/generated/torchvision.ops.deform_conv2d.html
    """
    kernel: Any = op.shape(weight)
    image: Any = op.shape(input)
    if kernel is None or None in kernel or image is None or image[1] is None:
        decline("the channels and the kernel's size must be fixed")
    height, width = kernel[2:]
    taps, channels = height * width, image[1]
    by_group = op.Reshape(offset, [-1, 2 * taps, 0, 0])
    rows = [(k // width) * dilation_h - pad_h for k in range(taps)]
    columns = [(k % width) * dilation_w - pad_w for k in range(taps)]
    coordinates = []
    for first, starts, stride, axis in ((1, columns, stride_w, 3), (0, rows, stride_h, 2)):
        move = op.Gather(by_group, [2 * k + first for k in range(taps)], axis=1)
        start = op.constant([[[[float(cell)]] for cell in starts]], op.dtype(input))
        cells = op.Add(move, op.Add(start, _strides(op, offset, axis, stride, input)))
        coordinates.append(op.Unsqueeze(_grid_coordinate(op, cells, input, axis), [-1]))
    places = op.Reshape(op.Concat(*coordinates, axis=-1), [0, 0, -1, 2])
    samples = op.GridSample(
        op.Reshape(input, [-1, channels // offset_groups, 0, 0]),
        places,
        mode="linear" if op.opset >= 20 else "bilinear",
        padding_mode="zeros",
        align_corners=0,
    )
    if use_mask:
        flat = op.Reshape(op.Reshape(mask, [-1, taps, 0, 0]), [0, 1, taps, -1])
        samples = op.Mul(samples, flat)
    samples = op.Reshape(samples, [-1, channels, 0, 0])
    summed = op.Conv(samples, op.Reshape(weight, [0, 0, -1, 1]), bias, group=groups, kernel_shape=[taps, 1])
    moves = op.shape(offset)
    if moves is not None and None not in moves[2:]:
        return op.Reshape(summed, [0, 0, *moves[2:]])
    return op.Reshape(summed, op.Concat([0, 0], _size(op, offset, 2), _size(op, offset, 3), axis=0))


def _strides(op: Ops, offset: Value, axis: int, stride: int, like: Value) -> Value:
    """Multiples of the stride, as many as the offsets have cells along an axis; broadcasts with the offsets."""
    moves: Any = op.shape(offset)
    if moves is not None and moves[axis] is not None:
        steps = [float(step * stride) for step in range(moves[axis])]
        return op.constant([[[steps]]] if axis == 3 else [[[[step] for step in steps]]], op.dtype(like))
    limit = op.Squeeze(_size(op, offset, axis), [0])
    numbers = op.Range(op.constant(0, torch.int64), limit, op.constant(1, torch.int64))
    multiples = op.Mul(op.CastLike(numbers, like), op.constant(float(stride), op.dtype(like)))
    return op.Unsqueeze(multiples, [0, 1, 2] if axis == 3 else [0, 1, 3])


def _grid_coordinate(op: Ops, cell: Value, image: Value, axis: int) -> Value:
    """(2 c + 1) / n - 1, which is GridSample's coordinate of cell c of n along an axis of the image."""
    shape: Any = op.shape(image)
    dtype = op.dtype(image)
    is_fixed = shape is not None and shape[axis] is not None
    size = op.constant(float(shape[axis]), dtype) if is_fixed else op.CastLike(_size(op, image, axis), image)
    doubled = op.Add(op.Mul(cell, op.constant(2.0, dtype)), op.constant(1.0, dtype))
    return op.Sub(op.Div(doubled, size), op.constant(1.0, dtype))


def _size(op: Ops, x: Value, axis: int) -> Value:
    """Size of an axis as an int64 tensor of shape (1,)."""
    return op.Gather(op.Shape(x), op.constant([axis], torch.int64), axis=0)


@symbolic(
    "torchvision::deform_conv2d",
    needed_on=("torchscript", "dynamo"),
    opset=(19, 99),
    exactness=Exactness.ROUNDING,
)
def deform_conv2d_19(
    op: Ops,
    input: Value,
    weight: Value,
    offset: Value,
    mask: Value,
    bias: Value,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    dilation_h: int,
    dilation_w: int,
    groups: int,
    offset_groups: int,
    use_mask: bool,
) -> Value:
    """One node, as stock dynamo has it; stock TorchScript does not know the operator.

    Declines: a kernel whose size varies.

    Schema: deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, SymInt
            stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, SymInt
            offset_groups, bool use_mask) -> Tensor
    Source: https://onnx.ai/onnx/operators/onnx__DeformConv.html
    """
    kernel = op.shape(weight)
    if kernel is None or None in kernel:
        decline("the kernel's size must be fixed")
    return op.DeformConv(
        input,
        weight,
        offset,
        bias,
        mask if use_mask else None,
        dilations=[dilation_h, dilation_w],
        group=groups,
        kernel_shape=list(kernel[2:]),
        offset_group=offset_groups,
        pads=[pad_h, pad_w, pad_h, pad_w],
        strides=[stride_h, stride_w],
    )
