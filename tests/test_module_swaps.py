"""The small models of benchmarks/module_swaps.py, right at every size through both exporters."""

import onnxruntime
import pytest
import torch
from swap_models import Case, cases

from torch_onnx_compat import export_compat
from torch_onnx_compat.catalogue.entry import EXPORTERS
from torch_onnx_compat.check.compare import compare

REFUSED = {
    ("Swin windows, shifted, padded by a decision", "dynamo"): "sizes that the data decides are no sizes of windows",
    **dict.fromkeys(
        [("positions, bicubic, antialiased", exporter) for exporter in EXPORTERS],
        "refused: antialiased bicubic down to a width of 1 differs from eager torch",
    ),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad")
@pytest.mark.parametrize("exporter", EXPORTERS)
@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in cases()])
def test_right_at_every_size(case: Case, exporter: str) -> None:
    if (case.name, exporter) in REFUSED:
        pytest.skip(REFUSED[case.name, exporter])
    result = export_compat(
        case.model(), case.example(), input_names=["x"], exporter=exporter, dynamic={"x": dict(case.axes)}
    )
    session = onnxruntime.InferenceSession(result.model_bytes)
    for size in case.sizes():
        x = torch.randn(size)
        (found,) = session.run(None, {"x": x.numpy()})
        row = compare(case.name, "", found, case.wanted(x))
        assert row.ok, f"{size}: {row.detail}"
