"""torchvision::deform_conv2d -> DeformConv.

Schema: deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h,
        SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups,
        SymInt offset_groups, bool use_mask) -> Tensor
Source: https://onnx.ai/onnx/operators/onnx__DeformConv.html
"""

from torch_onnx_compat import Exactness, Ops, Value, decline, symbolic


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
