"""torch's transformers: masks that Python looks into."""

from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite("torch.nn.modules.transformer._detect_is_causal_mask", needed_on=("dynamo",), exactness=Exactness.ROUNDING)
def causal_mask_unasked(mask: Tensor | None, is_causal: bool | None = None, size: int | None = None) -> bool:
    """Takes every mask for one that is not causal; stock dynamo cannot take a decision from a mask's values.

    Math: is_causal is a hint beside a mask and never changes the result; without it the mask is added.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.TransformerDecoder.html, tgt_is_causal
    """
    if mask is None or is_causal is not None:
        return NotImplemented
    return False
