"""Everything about ONNX files that are there, made by whatever tool: convert, compare, run and time them."""

from typing import TYPE_CHECKING

from torch_onnx_compat.lazy import import_on_demand as _import_on_demand

if TYPE_CHECKING:
    from torch_onnx_compat.files.conversion import Conversion as Conversion
    from torch_onnx_compat.files.convert import convert as convert

_import_on_demand(
    __name__,
    {
        "Conversion": "torch_onnx_compat.files.conversion",
        "convert": "torch_onnx_compat.files.convert",
    },
)
