"""Containers are taken apart and put together again, whatever their class."""

from collections import OrderedDict, defaultdict

import pytest
import torch

from torch_onnx_compat.inputs.tree import flatten, map_leaves, tensors_in

X = torch.arange(3.0)


class Keywords(OrderedDict):
    """Takes keywords only."""

    def __init__(self, **values):
        super().__init__(values)
        self.first = next(iter(values.values()), None)
        self.name = "result"


class Attributes(dict):
    """Its items are its attributes."""

    def __init__(self, **values):
        super().__init__(values)
        self.__dict__ = self


class Sized(dict):
    """Takes how many items there will be."""

    def __init__(self, size):
        super().__init__()
        self.size = size


def sized():
    made = Sized(2)
    made.update(a=X, b=X + 1)
    return made


@pytest.mark.parametrize(
    "made",
    [Keywords(a=X, b=X + 1), Attributes(a=X, b=X + 1), defaultdict(list, a=X, b=X + 1), sized(), OrderedDict(a=X, b=X)],
    ids=lambda made: type(made).__name__,
)
def test_dicts_of_any_class(made):
    other = map_leaves(made, lambda leaf: leaf * 2)
    assert type(other) is type(made)
    assert list(other) == list(made)
    assert all(torch.equal(other[key], made[key] * 2) for key in made)


def test_attributes_go_along():
    other = map_leaves(Keywords(a=X), lambda leaf: leaf * 2)
    assert other.first is other["a"]
    assert other.name == "result"
    assert map_leaves(Attributes(a=X), lambda leaf: leaf * 2).a.tolist() == [0.0, 2.0, 4.0]
    assert map_leaves(defaultdict(list, a=X), lambda leaf: leaf * 2)["b"] == []
    assert map_leaves(sized(), lambda leaf: leaf * 2).size == 2


@pytest.mark.parametrize(
    "value",
    [X, None, "x", [X, (X + 1, {"b": X, "a": [None, X + 2]})], Keywords(a=X, b=[X]), sized(), torch.rand(2, 3).max(1)],
    ids=["tensor", "nothing", "text", "nested", "keywords", "sized", "named tuple"],
)
def test_tensors_come_in_the_order_of_flatten(value):
    found, wanted = tensors_in(value), [tensor for _, tensor in flatten(value)[0]]
    assert len(found) == len(wanted)
    assert all(one is other for one, other in zip(found, wanted, strict=True))
