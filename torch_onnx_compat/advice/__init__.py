"""Which form of a file suits an engine, found by measuring."""

from typing import TYPE_CHECKING

from torch_onnx_compat.lazy import import_on_demand as _import_on_demand

if TYPE_CHECKING:
    from torch_onnx_compat.advice.advice import Advice as Advice
    from torch_onnx_compat.advice.advise import advise as advise

_import_on_demand(
    __name__,
    {"Advice": "torch_onnx_compat.advice.advice", "advise": "torch_onnx_compat.advice.advise"},
)
