"""Models with loops, written after the code for loops stood."""

import pytest

from control_flow.fresh_loops import FRESH_LOOPS
from control_flow.test_programs import check


@pytest.mark.one_exporter
@pytest.mark.parametrize("name", FRESH_LOOPS)
def test_right_on_every_branch(name, exporter):
    check(FRESH_LOOPS[name], exporter)
