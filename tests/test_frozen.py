"""The catalogue's contract with its users: the names of the entries, and the order in which siblings are tried."""

import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import torch_onnx_compat
from torch_onnx_compat.catalogue.catalogue import catalogue
from torch_onnx_compat.catalogue.entry import Machinery, Rewrite, Symbolic

NAMES = Path(__file__).with_name("entry_names.txt").read_text(encoding="utf-8").split()
"""Users write these in `include` and `exclude`, and files hold them as provenance: none may go or change."""

ORDERS = {
    "*": ["reparameterized_blocks", "quantized_model_on_floats"],
    "*.Focus": ["focus_to_conv", "focus_to_space_to_depth"],
    "aten::grid_sampler": ["grid_sampler", "grid_sampler_16"],
    "torch.Tensor.__ge__": ["ge_of_bool", "ge_of_halves"],
    "torch.Tensor.__gt__": ["gt_of_bool", "gt_of_halves"],
    "torch.Tensor.__le__": ["le_of_bool", "le_of_halves"],
    "torch.Tensor.__lshift__": ["left_shift_by_counts", "lshift_to_bitwise_left_shift"],
    "torch.Tensor.__lt__": ["lt_of_bool", "lt_of_halves"],
    "torch.Tensor.__pow__": ["pow_to_sqrt", "pow_of_computed_number"],
    "torch.Tensor.__rshift__": ["right_shift_by_counts", "rshift_to_bitwise_right_shift"],
    "torch.Tensor.__setitem__": [
        "setitem_of_none",
        "setitem_of_split_indices",
        "setitem_to_expanded",
        "setitem_of_single_axes",
    ],
    "torch.Tensor.unfold": ["tensor_unfold_to_take", "tensor_unfold_of_computed_size"],
    "torch.arange": ["arange_from_zero", "arange_of_fractions"],
    "torch.bincount": ["bincount_of_weights", "bincount_to_sum"],
    "torch.chunk": ["chunk_of_quantized", "chunk_of_few_cells"],
    "torch.conv1d": ["conv_by_group", "conv_of_computed_kernel", "conv_of_varying_steps", "conv_same_to_pad"],
    "torch.conv2d": ["conv_by_group", "conv_of_computed_kernel", "conv_of_varying_steps", "conv_same_to_pad"],
    "torch.conv3d": ["conv_by_group", "conv_of_computed_kernel", "conv_of_varying_steps", "conv_same_to_pad"],
    "torch.conv_transpose1d": [
        "conv_transpose_by_group",
        "conv_transpose_of_computed_kernel",
        "conv_transpose_to_size",
    ],
    "torch.conv_transpose2d": [
        "conv_transpose_by_group",
        "conv_transpose_of_computed_kernel",
        "conv_transpose_to_size",
    ],
    "torch.conv_transpose3d": [
        "conv_transpose_by_group",
        "conv_transpose_of_computed_kernel",
        "conv_transpose_to_size",
    ],
    "torch.cumsum": ["cumsum_in_double", "cumsum_of_integers"],
    "torch.fix": ["rounding_of_integers", "trunc_to_floor"],
    "torch.full": ["full_of_complex_to_pair", "full_of_whole_number"],
    "torch.ge": ["ge_of_bool", "ge_of_halves"],
    "torch.greater": ["gt_of_bool", "gt_of_halves"],
    "torch.greater_equal": ["ge_of_bool", "ge_of_halves"],
    "torch.grid_sampler": ["grid_sample_3d_to_gather", "grid_sample_to_gather"],
    "torch.grid_sampler_2d": ["grid_sample_to_gather", "grid_sampler_nd_to_grid_sampler"],
    "torch.grid_sampler_3d": ["grid_sample_3d_to_gather", "grid_sample_to_gather", "grid_sampler_nd_to_grid_sampler"],
    "torch.gru": ["float64_recurrent", "gru_of_any_length", "gru_of_packed"],
    "torch.gt": ["gt_of_bool", "gt_of_halves"],
    "torch.histc": ["histc_of_data", "histc_to_counts"],
    "torch.le": ["le_of_bool", "le_of_halves"],
    "torch.less": ["lt_of_bool", "lt_of_halves"],
    "torch.less_equal": ["le_of_bool", "le_of_halves"],
    "torch.linalg.matrix_norm": ["matrix_norm_to_rotations", "matrix_norm_to_sum"],
    "torch.linalg.norm": ["linalg_norm_to_vector_norm", "matrix_norm_to_rotations"],
    "torch.lstm": ["float64_recurrent", "lstm_of_any_length", "lstm_of_packed", "lstm_projection_to_matmul"],
    "torch.lt": ["lt_of_bool", "lt_of_halves"],
    "torch.nn.functional.affine_grid": ["affine_grid_of_any_size", "affine_grid_to_sum"],
    "torch.nn.functional.avg_pool2d": ["avg_pool2d_of_whole_map", "avg_pool2d_to_sum"],
    "torch.nn.functional.avg_pool3d": ["avg_pool3d_of_whole_map", "avg_pool3d_to_sum"],
    "torch.nn.functional.fold": ["fold_of_batch", "fold_to_take"],
    "torch.nn.functional.interpolate": [
        "interpolate_antialias_by_scale",
        "interpolate_antialias_to_matmul",
        "interpolate_area_to_pool",
        "interpolate_nearest_exact",
        "interpolate_nearest_exact_by_scale",
        "interpolate_nearest_to_fixed_size",
        "interpolate_nearest_to_varying_size",
        "interpolate_aligned_line",
        "interpolate_recomputed_scale",
        "interpolate_varying_scale",
    ],
    "torch.nn.functional.max_pool1d": ["max_pool1d_of_whole_map", "max_pool1d_of_indices"],
    "torch.nn.functional.max_pool2d": ["max_pool2d_of_whole_map", "max_pool2d_unbatched"],
    "torch.nn.functional.one_hot": ["one_hot_of_largest", "one_hot_of_number"],
    "torch.nn.functional.pad": ["circular_pad_of_crop", "circular_pad_of_varying_width"],
    "torch.nn.functional.softplus": ["softplus_in_double", "softplus_threshold"],
    "torch.pixel_shuffle": ["pixel_shuffle_of_integers", "pixel_shuffle_of_images"],
    "torch.pow": ["pow_to_sqrt", "pow_of_computed_number"],
    "torch.repeat_interleave": ["repeat_interleave_by_size", "repeat_interleave_to_nonzero"],
    "torch.rnn_relu": ["float64_recurrent", "rnn_relu_of_any_length", "rnn_relu_of_packed"],
    "torch.rnn_tanh": ["float64_recurrent", "rnn_tanh_of_any_length", "rnn_tanh_of_packed"],
    "torch.sort": ["sort_of_bool", "sort_stable"],
    "torch.sum": ["sum_of_half", "sum_of_int64", "sum_of_narrow_integers"],
    "torch.trunc": ["rounding_of_integers", "trunc_to_floor"],
    "torchvision::deform_conv2d": ["deform_conv2d", "deform_conv2d_19"],
}
"""For each function that several entries replace, the order in which they are tried: the first that applies wins."""


def test_names() -> None:
    assert sorted(entry.name for entry in catalogue()) == sorted(NAMES)


def test_orders() -> None:
    found: dict[str, list[str]] = defaultdict(list)
    for entry in (e for e in catalogue() if not isinstance(e, Machinery)):
        assert isinstance(entry, (Rewrite, Symbolic))
        for replaced in dict.fromkeys(entry.replaces.split(", ") if isinstance(entry, Rewrite) else [entry.op]):
            found[replaced].append(entry.name)
    assert {replaced: names for replaced, names in found.items() if len(names) > 1} == ORDERS


def test_order_does_not_depend_on_what_was_imported_before() -> None:
    program = (
        "import torch_onnx_compat.rewrites.mergeable_blocks, torch_onnx_compat.symbolics.sorting\n"
        "from torch_onnx_compat.catalogue.catalogue import catalogue\n"
        "print(*(entry.name for entry in catalogue()))"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(torch_onnx_compat.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.split() == [e.name for e in catalogue() if e.owner.startswith("torch_onnx_compat.")]
