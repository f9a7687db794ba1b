"""Every line of the operator matrix through both exporters; minutes, so marked slow."""

import pytest
from operator_cases import families

from torch_onnx_compat import CompatError, export_compat

LINES = [pytest.param(case, id=case.name) for cases in families().values() for case in cases]
OPSETS = {"torchscript": (17,), "dynamo": (18, 20)}

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("case", LINES)
def test_is_right_or_declined_with_a_reason(case, exporter):
    args = case.example()
    options = {
        "input_names": [f"input{i}" for i in range(len(args))],
        "dynamic": case.dynamic_axes() or None,
        "samples": [case.other()],
        **case.options,
    }
    for opset in OPSETS[exporter]:
        if case.declined:
            with pytest.raises(CompatError) as caught:
                export_compat(case.model(), args, exporter=exporter, opset_version=opset, **options)
            assert case.declined in str(caught.value)
        else:
            assert export_compat(case.model(), args, exporter=exporter, opset_version=opset, **options).opset == opset
