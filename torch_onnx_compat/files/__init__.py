"""Everything about ONNX files that are there, made by whatever tool: convert, compare, run and time them."""

from typing import TYPE_CHECKING

from torch_onnx_compat.lazy import import_on_demand as _import_on_demand

if TYPE_CHECKING:
    from torch_onnx_compat.files.bench import Bench as Bench
    from torch_onnx_compat.files.bench import bench as bench
    from torch_onnx_compat.files.bench import run as run
    from torch_onnx_compat.files.compare import FileComparison as FileComparison
    from torch_onnx_compat.files.compare import compare as compare
    from torch_onnx_compat.files.conversion import Conversion as Conversion
    from torch_onnx_compat.files.convert import convert as convert
    from torch_onnx_compat.files.layers import FirstDifference as FirstDifference

_import_on_demand(
    __name__,
    {
        "Bench": "torch_onnx_compat.files.bench",
        "Conversion": "torch_onnx_compat.files.conversion",
        "FileComparison": "torch_onnx_compat.files.compare",
        "FirstDifference": "torch_onnx_compat.files.layers",
        "bench": "torch_onnx_compat.files.bench",
        "compare": "torch_onnx_compat.files.compare",
        "convert": "torch_onnx_compat.files.convert",
        "run": "torch_onnx_compat.files.bench",
    },
)
