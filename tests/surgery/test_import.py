"""Detections where nobody has imported torchvision, and what importing the package costs."""

import subprocess
import sys

PROGRAM = """
import sys
import torch
from torch_onnx_compat import Detections, export_compat
assert "torchvision" not in sys.modules
declared = Detections("nms", box_format="xyxy", candidates=5)
print(export_compat(torch.nn.Identity(), torch.rand(1, 9, 6), postprocess=declared, exporter="torchscript").nodes)
"""


def test_torchvision_is_imported_only_where_it_is_needed():
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "'NonMaxSuppression': 1" in run.stdout
