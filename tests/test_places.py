import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.places import is_user_file


@pytest.mark.parametrize("name", ["roll_to_slices", "remainder"])
def test_entries_are_no_code_of_the_user(name):
    assert not is_user_file(catalogue()[name].body.__code__.co_filename)


def test_the_rest_is():
    assert is_user_file(__file__)
    assert is_user_file("/home/someone/rewrites/model.py")
    assert not is_user_file(torch.__file__)
    assert not is_user_file(rewrite.__code__.co_filename)
    assert not is_user_file("<string>")
