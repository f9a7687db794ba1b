"""transformers::grouped_mm_fallback -> a MatMul for each group.

Math:   torch_onnx_compat.functional.grouping
Schema: grouped_mm_fallback(Tensor input, Tensor weight, Tensor offs) -> Tensor
Source: https://github.com/huggingface/transformers/blob/main/src/transformers/integrations/moe.py
"""

from torch_onnx_compat import Exactness, Ops, Value, symbolic
from torch_onnx_compat.functional.grouping import grouped_products


@symbolic("transformers::grouped_mm_fallback", needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def grouped_mm_fallback(op: Ops, input: Value, weight: Value, offs: Value) -> Value:
    """What transformers' mixtures of experts call instead of torch's grouped_mm, under torch.export and on old torch.

    Declines: a number of groups that varies.
    """
    return grouped_products(op, input, weight, offs)
