"""Raising the opset: the operators that changed their meaning, and what cannot be raised."""

import numpy as np
import pytest

from torch_onnx_compat.errors import UnsupportedError


@pytest.mark.parametrize("opset", [20, 21, 23])
def test_meanings_that_changed_are_carried_over(oracle, opset):
    graph = """(float[2,6,4,1] x, float[2,1,6,4] z, float[2,3,5,2] g) =>
        (float[2,6,4,2] y, float[2,6,4,2] w, float[2,1,3,5] u, float[2,1,3,5] v) {
        y = DFT(x)
        w = DFT<axis = 2>(x)
        u = GridSample(z, g)
        v = GridSample<mode = "bicubic">(z, g)}"""
    proto = oracle.parse(19, graph)
    raised = oracle.converted(proto, opset)
    oracle.check(raised)
    assert {o.domain: o.version for o in raised.opset_import} == {"": opset}
    feeds = oracle.feeds(proto)
    oracle.assert_close(oracle.run(raised, feeds), oracle.run(proto, feeds), eps=8)


def test_group_normalization_gets_scales_per_channel(oracle):
    graph = """(float[2,C,5] x, float[2] s, float[2] b) => (float[2,C,5] y) {
        y = GroupNormalization<num_groups = 2>(x, s, b)}"""
    raised = oracle.converted(oracle.parse(18, graph), 21)
    oracle.check(raised)
    feeds = oracle.feeds(raised)
    groups = feeds["x"].astype(np.float64).reshape(2, 2, -1)
    normal = (groups - groups.mean(-1, keepdims=True)) / np.sqrt(groups.var(-1, keepdims=True) + 1e-5)
    expected = (normal * feeds["s"][:, None] + feeds["b"][:, None]).reshape(2, 4, 5).astype(np.float32)
    oracle.assert_close(oracle.run(raised, feeds), [expected], eps=16)


def test_there_and_back(oracle):
    graph = """(float[2,4,6,1] x, float[1,1,4,4] z, float[1,3,3,2] g, float[1,4,5] n, float[2] s) =>
        (float[2,4,6,2] y, float[1,1,3,3] v, float[1,4,5] w) {
        y = DFT<axis = 2>(x) v = GridSample<mode = "nearest">(z, g) w = Identity(n)}"""
    proto = oracle.parse(19, graph)
    back = oracle.converted(oracle.converted(proto, 23), 19)
    feeds = oracle.feeds(proto)
    oracle.assert_close(oracle.run(back, feeds), oracle.run(proto, feeds))


def test_subgraphs_are_raised(oracle):
    graph = """(bool c, float[1,1,4,4] x, float[1,4,4,2] g) => (float[1,1,4,4] y) {
        y = If(c) <then_branch = a () => (float[1,1,4,4] u) {u = GridSample<mode = "bicubic">(x, g)},
                   else_branch = b () => (float[1,1,4,4] v) {v = Neg(x)}>}"""
    proto = oracle.parse(18, graph)
    raised = oracle.converted(proto, 20)
    for c in (True, False):
        feeds = {**oracle.feeds(proto), "c": np.array(c)}
        oracle.assert_close(oracle.run(raised, feeds), oracle.run(proto, feeds))


def test_opsets_before_18_are_not_raised(oracle):
    proto = oracle.parse(17, "(float[2,3] x) => (float[2,1] y) {y = ReduceMean<axes = [1]>(x)}")
    with pytest.raises(UnsupportedError, match="opset_version=20: the model, written for opset 17, cannot be raised"):
        oracle.converted(proto, 20)


def test_operators_that_went_away_are_obstacles(oracle):
    graph = "(float[2,4,5] x, float[2] s) => (float[2,4,5] y) {y = GroupNormalization<num_groups = 2>(x, s, s)}"
    with pytest.raises(
        UnsupportedError, match=r"GroupNormalization, 1 node, .*: the operator is deprecated at opset 20"
    ):
        oracle.converted(oracle.parse(18, graph), 20)
