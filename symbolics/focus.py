"""YOLO's Focus, which is space to depth, as an operator."""

from torch_onnx_compat import Exactness, Ops, Value, symbolic


@symbolic("torch_onnx_compat::focus", needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def focus(op: Ops, image: Value) -> Value:
    """Cuts an image (N, C, H, W) into (N, 4 C, H / 2, W / 2).

    Math:   Focus and SpaceToDepth make one channel of each cell of a 2 x 2 patch. SpaceToDepth takes the cells row by
            row, Focus column by column, so the two middle quarters of the channels change places.
    Schema: focus(Tensor image) -> Tensor
    Source: https://onnx.ai/onnx/operators/onnx__SpaceToDepth.html; torch_onnx_compat.functional.focus
    """
    shape = op.shape(image)
    if shape is None or shape[1] is None:
        # SpaceToDepth of the transposed image takes the cells column by column.
        transposed = op.SpaceToDepth(op.Transpose(image, perm=[0, 1, 3, 2]), blocksize=2)
        return op.Transpose(transposed, perm=[0, 1, 3, 2])
    quarters = [range(quarter * shape[1], (quarter + 1) * shape[1]) for quarter in (0, 2, 1, 3)]
    channels = [channel for quarter in quarters for channel in quarter]
    return op.Gather(op.SpaceToDepth(image, blocksize=2), channels, axis=1)
