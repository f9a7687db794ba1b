"""Which ONNX operators correspond to which of torch's, as far as the search for a place needs it."""

from __future__ import annotations

PARTS = frozenset(
    {"slice", "select", "split", "split_with_sizes", "unbind", "chunk", "narrow", "index", "index_select", "gather"}
    | {"Slice", "Split", "Gather", "GatherND", "GatherElements"}
)
"""Operators whose result is a part of their operand."""

_KINDS = {
    "Conv": ("convolution",),
    "ConvTranspose": ("convolution",),
    "Gemm": ("addmm", "mm", "linear"),
    "MatMul": ("mm", "bmm", "matmul", "addmm", "linear", "baddbmm"),
    "Einsum": ("bmm", "mm"),
    "BatchNormalization": ("native_batch_norm", "batch_norm"),
    "LayerNormalization": ("native_layer_norm", "layer_norm"),
    "GroupNormalization": ("native_group_norm", "group_norm"),
    "InstanceNormalization": ("native_batch_norm", "instance_norm", "native_group_norm"),
    "MaxPool": ("max_pool2d_with_indices", "max_pool2d", "max_pool1d", "max_pool3d"),
    "AveragePool": ("avg_pool2d", "avg_pool1d", "avg_pool3d", "mean"),
    "GlobalAveragePool": ("mean", "adaptive_avg_pool2d"),
    "ReduceMean": ("mean",),
    "ReduceSum": ("sum",),
    "ReduceMax": ("amax", "max"),
    "ReduceMin": ("amin", "min"),
    "ReduceL2": ("linalg_vector_norm", "norm"),
    "Transpose": ("permute", "transpose", "t"),
    "Reshape": ("view", "reshape", "unsafe_view"),
    "Slice": ("slice", "select", "narrow"),
    "Gather": ("index_select", "embedding", "select", "index"),
    "Concat": ("cat", "stack"),
    "Split": ("split", "split_with_sizes", "unbind"),
    "Pad": ("constant_pad_nd", "reflection_pad2d", "replication_pad2d"),
    "Resize": ("upsample_bilinear2d", "upsample_nearest2d", "upsample_bicubic2d"),
    "Softmax": ("softmax",),
    "LogSoftmax": ("log_softmax",),
    "Clip": ("clamp", "hardtanh", "clamp_min", "clamp_max"),
    "LeakyRelu": ("leaky_relu",),
    "HardSwish": ("hardswish",),
    "HardSigmoid": ("hardsigmoid",),
    "Where": ("where", "masked_fill"),
    "Expand": ("expand", "repeat"),
    "Tile": ("repeat", "tile"),
}


def is_same_kind(torch_operator: str, onnx_operator: str) -> bool:
    """Whether an ONNX operator is a usual form of one of torch's.

    Args:
        torch_operator: As ``aten.convolution``.
        onnx_operator: As ``Conv``.
    """
    name = torch_operator.rpartition(".")[2].strip("_")
    return name in _KINDS.get(onnx_operator, (onnx_operator.lower(),))
