"""Every line of the operator matrix through both exporters; many minutes, so most are marked slow."""

import pytest
from operator_cases import families
from operator_cases.exports import ours

from torch_onnx_compat import CompatError

OFTEN = 16
"""One line of so many is tried by every run of the tests."""

CASES = [case for cases in families().values() for case in cases]
LINES = [
    pytest.param(case, id=case.name, marks=[pytest.mark.slow] if number % OFTEN else [])
    for number, case in enumerate(CASES)
]
OPSETS = {"torchscript": (17,), "dynamo": (18, 20)}


@pytest.mark.one_exporter
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
