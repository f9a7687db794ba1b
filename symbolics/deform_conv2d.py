"""torchvision::deform_conv2d -> GridSample and Conv, where there is no DeformConv.

Math:   tap k of the kernel reads cell (p stride - padding + k dilation + offset) by bilinear interpolation, with zeros
        outside; the taps are then an axis that one convolution, with a kernel of their number, sums up. GridSample has
        cell c of n at (2 c + 1) / n - 1.
Schema: deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h,
        SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups,
        SymInt offset_groups, bool use_mask) -> Tensor
Source: https://docs.pytorch.org/vision/stable/generated/torchvision.ops.deform_conv2d.html
"""

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
    """
    kernel, image, moves = op.shape(weight), op.shape(input), op.shape(offset)
    if kernel is None or None in kernel or image is None or image[1] is None:
        decline("the channels and the kernel's size must be fixed")
    height, width = int(kernel[2] or 0), int(kernel[3] or 0)
    taps, channels = height * width, int(image[1] or 0)
    dtype = op.dtype(input)
    by_group = op.Reshape(offset, [-1, 2 * taps, 0, 0])
    rows = [(k // width) * dilation_h - pad_h for k in range(taps)]
    columns = [(k % width) * dilation_w - pad_w for k in range(taps)]
    coordinates = []
    for first, starts, stride, axis in ((1, columns, stride_w, 3), (0, rows, stride_h, 2)):
        move = op.Gather(by_group, [2 * k + first for k in range(taps)], axis=1)
        start = op.constant([[[[float(cell)]] for cell in starts]], dtype)
        count = None if moves is None else moves[axis]
        if count is not None:
            steps = [float(step * stride) for step in range(count)]
            grid = op.constant([[[steps]]] if axis == 3 else [[[[step] for step in steps]]], dtype)
        else:
            limit = op.Squeeze(_size(op, offset, axis), [0])
            zero, one = op.constant(0, torch.int64), op.constant(1, torch.int64)
            steps = op.Mul(op.CastLike(op.Range(zero, limit, one), input), op.constant(float(stride), dtype))
            grid = op.Unsqueeze(steps, [0, 1, 2] if axis == 3 else [0, 1, 3])
        position = op.Add(move, op.Add(start, grid))
        size = op.constant(float(image[axis] or 0), dtype)
        if image[axis] is None:
            size = op.CastLike(_size(op, input, axis), input)
        doubled = op.Add(op.Mul(position, op.constant(2.0, dtype)), op.constant(1.0, dtype))
        coordinate = op.Sub(op.Div(doubled, size), op.constant(1.0, dtype))
        coordinates.append(op.Unsqueeze(coordinate, [-1]))
    places = op.Reshape(op.Concat(*coordinates, axis=-1), [0, 0, -1, 2])
    cells = op.Reshape(input, [-1, channels // offset_groups, 0, 0])
    mode = "linear" if op.opset >= 20 else "bilinear"
    samples = op.GridSample(cells, places, mode=mode, padding_mode="zeros", align_corners=0)
    if use_mask:
        flat = op.Reshape(op.Reshape(mask, [-1, taps, 0, 0]), [0, 1, taps, -1])
        samples = op.Mul(samples, flat)
    columns_of = op.Reshape(samples, [-1, channels, 0, 0])
    summed = op.Conv(columns_of, op.Reshape(weight, [0, 0, -1, 1]), bias, group=groups, kernel_shape=[taps, 1])
    if moves is not None and moves[2] is not None and moves[3] is not None:
        return op.Reshape(summed, [0, 0, moves[2], moves[3]])
    return op.Reshape(summed, op.Concat([0, 0], _size(op, offset, 2), _size(op, offset, 3), axis=0))


def _size(op: Ops, x: Value, axis: int) -> Value:
    return op.Gather(op.Shape(x), op.constant([axis], torch.int64), axis=0)
