"""timm: attention written out, for opsets without an operator Attention.

Source: https://github.com/huggingface/pytorch-image-models/blob/main/timm/layers/attention.py (fused_attn)
"""

import copy

from torch import nn

from torch_onnx_compat import Exactness, decline, rewrite


@rewrite(
    "module:timm.*",
    always=True,
    opset=(11, 22),  # from 23 on there is an operator for it
    exactness=Exactness.ROUNDING,
)
def fused_attention_to_matmul(attention: nn.Module) -> nn.Module:
    """Sets `fused_attn` off, on a copy.

    Declines: hooks on the module, which its copy would not run.

    Math: softmax(s q k^T + mask) v with the scale s on q alone. Both exporters write the fused function with more
          nodes: the root of the scale on q and on k, and shapes that they compute for it.
    """
    if getattr(attention, "fused_attn", False) is not True:
        return NotImplemented
    if attention._forward_hooks or attention._forward_pre_hooks:
        decline("the module has hooks, which its copy would not run")
    unfused = copy.copy(attention)
    vars(unfused)["fused_attn"] = False
    return unfused
