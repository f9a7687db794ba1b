"""Which functions are noted once a tensor stands for a number, and which libraries are followed."""

import sys

import pytest

from torch_onnx_compat.caller.reach import is_followed
from torch_onnx_compat.control_flow.find.users import NumberUsers


def noted():
    return 1


def passed_over():
    return 2


def test_a_pause_notes_nothing():
    users = NumberUsers()
    before = sys.getprofile()
    with users.watch():
        with users.pause():  # nothing is noted yet
            passed_over()
        users.begin()
        with pytest.raises(ValueError, match="within"), users.pause():
            _fail()
        noted()
    assert sys.getprofile() is before
    assert noted.__code__ in users.codes
    assert not {passed_over.__code__, _fail.__code__} & set(users.codes)


def _fail():
    assert sys.getprofile() is None
    raise ValueError("within")


@pytest.mark.parametrize(("module", "is_models"), [("sympy.core.add", False), ("mpmath", False), ("einx._src", True)])
def test_what_torch_requires_is_not_followed(module, is_models):
    """sympy alone has more functions than are followed, and each decision would look at what they hold."""
    assert is_followed(module) is is_models
