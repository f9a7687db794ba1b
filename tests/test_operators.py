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
        try:
            result = ours(case, exporter, opset)
        except CompatError as refusal:
            if not case.declined:  # some are right to be declined on one exporter only
                raise
            assert case.declined in str(refusal)
        else:
            assert result.opset == opset
