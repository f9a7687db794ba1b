"""Models written after the code stood."""

import pytest

from control_flow.fresh_programs import FRESH
from control_flow.test_programs import check


@pytest.mark.one_exporter
@pytest.mark.parametrize("name", FRESH)
def test_right_on_every_branch(name, exporter):
    check(FRESH[name], exporter)
