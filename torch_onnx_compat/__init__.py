"""Gets any PyTorch model into any inference engine, correctly: export_compat() and the catalogue behind it."""

from pathlib import Path as _Path
from typing import TYPE_CHECKING

from torch_onnx_compat.lazy import import_on_demand as _import_on_demand
from torch_onnx_compat.version import __version__ as __version__

_here = _Path(__file__).parent
if not (_here / "symbolics").is_dir():  # a checkout: the catalogue lies beside this package
    __path__.append(str(_here.parent))

if TYPE_CHECKING:
    from torch_onnx_compat.advice.advise import advise as advise
    from torch_onnx_compat.catalogue.entry import Exactness as Exactness
    from torch_onnx_compat.catalogue.entry import decline as decline
    from torch_onnx_compat.catalogue.registry import Declaration as Declaration
    from torch_onnx_compat.catalogue.registry import decomposition as decomposition
    from torch_onnx_compat.catalogue.registry import rewrite as rewrite
    from torch_onnx_compat.catalogue.registry import symbolic as symbolic
    from torch_onnx_compat.check.localise import localise as localise
    from torch_onnx_compat.check.options import Verify as Verify
    from torch_onnx_compat.check.run_failure import explain_run as explain_run
    from torch_onnx_compat.diagnosis.explain import explain as explain
    from torch_onnx_compat.doctor.doctor import doctor as doctor
    from torch_onnx_compat.errors import CompatError as CompatError
    from torch_onnx_compat.export import export_compat as export_compat
    from torch_onnx_compat.export import plan as plan
    from torch_onnx_compat.files.bench import bench as bench
    from torch_onnx_compat.files.compare import compare as compare
    from torch_onnx_compat.files.convert import convert as convert
    from torch_onnx_compat.ops import Ops as Ops
    from torch_onnx_compat.ops import Value as Value
    from torch_onnx_compat.precision.formats import Bfloat16 as Bfloat16
    from torch_onnx_compat.precision.formats import Float16 as Float16
    from torch_onnx_compat.precision.int8.request import Dynamic as Dynamic
    from torch_onnx_compat.precision.int8.request import Int8 as Int8
    from torch_onnx_compat.precision.int8.request import WeightOnly as WeightOnly
    from torch_onnx_compat.result import ExportResult as ExportResult
    from torch_onnx_compat.surgery.around_model.custom import CustomNode as CustomNode
    from torch_onnx_compat.surgery.around_model.detections import Detections as Detections
    from torch_onnx_compat.surgery.around_model.normalize import Normalize as Normalize
    from torch_onnx_compat.targets import Target as Target

_import_on_demand(
    __name__,
    {
        "Bfloat16": "torch_onnx_compat.precision.formats",
        "CompatError": "torch_onnx_compat.errors",
        "CustomNode": "torch_onnx_compat.surgery.around_model.custom",
        "Declaration": "torch_onnx_compat.catalogue.registry",
        "Detections": "torch_onnx_compat.surgery.around_model.detections",
        "Exactness": "torch_onnx_compat.catalogue.entry",
        "ExportResult": "torch_onnx_compat.result",
        "Float16": "torch_onnx_compat.precision.formats",
        "Dynamic": "torch_onnx_compat.precision.int8.request",
        "Int8": "torch_onnx_compat.precision.int8.request",
        "WeightOnly": "torch_onnx_compat.precision.int8.request",
        "Normalize": "torch_onnx_compat.surgery.around_model.normalize",
        "Ops": "torch_onnx_compat.ops",
        "Target": "torch_onnx_compat.targets",
        "Value": "torch_onnx_compat.ops",
        "Verify": "torch_onnx_compat.check.options",
        "advise": "torch_onnx_compat.advice.advise",
        "bench": "torch_onnx_compat.files.bench",
        "compare": "torch_onnx_compat.files.compare",
        "convert": "torch_onnx_compat.files.convert",
        "decline": "torch_onnx_compat.catalogue.entry",
        "decomposition": "torch_onnx_compat.catalogue.registry",
        "doctor": "torch_onnx_compat.doctor.doctor",
        "explain": "torch_onnx_compat.diagnosis.explain",
        "explain_run": "torch_onnx_compat.check.run_failure",
        "export_compat": "torch_onnx_compat.export",
        "localise": "torch_onnx_compat.check.localise",
        "plan": "torch_onnx_compat.export",
        "rewrite": "torch_onnx_compat.catalogue.registry",
        "symbolic": "torch_onnx_compat.catalogue.registry",
    },
)
