"""What becomes of nn.Modules, of models' own Python and of libraries' functions (`@rewrite`), by what a user looks for.

A module holds one subject. Where several entries replace one thing, they are tried in the order of `FAMILIES`, and
within a module in the order in which they stand.
"""

FAMILIES = (
    "masks",
    "preprocessing",
    "postprocessing",
    "whole_map_pools",
    "pools",
    "adaptive_pools",
    "yolo_focus",
    "timm_attention",
    "mergeable_blocks",
    "swin_windows",
    "einx_notation",
    "transformer_masks",
    "torchvision_detection",
    "training_leftovers",
    "quantization_aware",
    "quantized_models",
)
"""The modules, in the order in which they are loaded and tried: what knows a class by name before what looks at all."""

if __name__ == "rewrites":  # by its path in a checkout; each file would register its entries twice
    raise ImportError("import torch_onnx_compat.rewrites instead")
