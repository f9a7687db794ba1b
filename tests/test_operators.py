"""Every line of the operator matrix through both exporters; many minutes, so marked slow."""

import pytest
from operator_cases import families
from operator_cases.exports import ours

from torch_onnx_compat import CompatError

LINES = [pytest.param(case, id=case.name) for cases in families().values() for case in cases]
OPSETS = {"torchscript": (17,), "dynamo": (18, 20)}

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("case", LINES)
def test_is_right_or_declined_with_a_reason(case, exporter):
    for opset in OPSETS[exporter]:
        if case.declined:
            with pytest.raises(CompatError) as caught:
                ours(case, exporter, opset)
            assert case.declined in str(caught.value)
        else:
            assert ours(case, exporter, opset).opset == opset
