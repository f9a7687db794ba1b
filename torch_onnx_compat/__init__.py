"""Gets any PyTorch model into any inference engine, correctly: export_compat() and the catalogue behind it."""

from pathlib import Path as _Path

_here = _Path(__file__).parent
if not (_here / "symbolics").is_dir():  # a checkout: the catalogue lies beside this package
    __path__.append(str(_here.parent))

from torch_onnx_compat.check.cases import Verify  # noqa: E402
from torch_onnx_compat.entry import Exactness, decline  # noqa: E402
from torch_onnx_compat.errors import CompatError  # noqa: E402
from torch_onnx_compat.export import export_compat, plan  # noqa: E402
from torch_onnx_compat.ops import Ops, Value  # noqa: E402
from torch_onnx_compat.precision.formats import Bfloat16, Float16  # noqa: E402
from torch_onnx_compat.registry import Declaration, decomposition, rewrite, symbolic  # noqa: E402
from torch_onnx_compat.result import ExportResult  # noqa: E402
from torch_onnx_compat.surgery.around_model.custom import CustomNode  # noqa: E402
from torch_onnx_compat.surgery.around_model.detections import Detections  # noqa: E402
from torch_onnx_compat.surgery.around_model.normalize import Normalize  # noqa: E402
from torch_onnx_compat.targets import Target  # noqa: E402
from torch_onnx_compat.version import __version__ as __version__  # noqa: E402

__all__ = [
    "Bfloat16",
    "CompatError",
    "CustomNode",
    "Declaration",
    "Detections",
    "Exactness",
    "ExportResult",
    "Float16",
    "Normalize",
    "Ops",
    "Target",
    "Value",
    "Verify",
    "decline",
    "decomposition",
    "export_compat",
    "plan",
    "rewrite",
    "symbolic",
]
