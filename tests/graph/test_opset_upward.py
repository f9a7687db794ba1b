"""Raising the opset, which onnxscript's converter does, and what it would leave wrong in silence."""

import numpy as np
import pytest

from torch_onnx_compat.errors import UnsupportedError


def test_meanings_that_changed_are_carried_over(oracle):
    graph = """(float[2,6,4,1] x, float[2,6,4,1] z, float[2,3,4,2] g) => (float[2,6,4,2] y, float[2,6,3,4] w) {
        y = DFT<axis = 1>(x)
        t = Transpose<perm = [0, 1, 3, 2]>(z)
        w = GridSample<mode = "bilinear">(t, g)}"""
    raised = oracle.converted(oracle.parse(19, graph), 22)
    assert {o.domain: o.version for o in raised.opset_import} == {"": 22}
    feeds = oracle.feeds(raised)
    oracle.assert_close(oracle.run(raised, feeds), oracle.run(oracle.parse(19, graph), feeds), eps=8)


def test_group_normalization_gets_scales_per_channel(oracle):
    graph = """(float[2,6,5] x, float[2] s, float[2] b) => (float[2,6,5] y) {
        y = GroupNormalization<num_groups = 2>(x, s, b)}"""
    raised = oracle.converted(oracle.parse(18, graph), 21)
    feeds = oracle.feeds(raised)
    groups = feeds["x"].astype(np.float64).reshape(2, 2, -1)
    normal = (groups - groups.mean(-1, keepdims=True)) / np.sqrt(groups.var(-1, keepdims=True) + 1e-5)
    expected = (normal * feeds["s"][:, None] + feeds["b"][:, None]).reshape(2, 6, 5).astype(np.float32)
    oracle.assert_close(oracle.run(raised, feeds), [expected], eps=16)


def test_group_normalization_of_unknown_channels_is_an_obstacle(oracle):
    graph = """(float[2,C,5] x, float[2] s, float[2] b) => (float[2,C,5] y) {
        y = GroupNormalization<num_groups = 2>(x, s, b)}"""
    with pytest.raises(
        UnsupportedError,
        match=r"GroupNormalization, 1 node, .*number of channels is unknown.*ask for opset_version < 21",
    ):
        oracle.converted(oracle.parse(20, graph), 21)


def test_opsets_before_18_are_not_raised(oracle):
    proto = oracle.parse(17, "(float[2,3] x) => (float[2,1] y) {y = ReduceMean<axes = [1]>(x)}")
    with pytest.raises(UnsupportedError, match="opset_version=20: the model, written for opset 17, cannot be raised"):
        oracle.converted(proto, 20)


def test_the_converter_has_a_highest_opset(oracle):
    proto = oracle.parse(20, "(float[2] x) => (float[2] y) {y = Abs(x)}")
    with pytest.raises(UnsupportedError, match="opset_version=28: the model, written for opset 20, cannot be raised"):
        oracle.converted(proto, 28)


def test_functions_and_subgraphs_are_raised(oracle):
    graph = """(bool c, float[1,1,4,4] x, float[1,4,4,2] g) => (float[1,1,4,4] y) {
        y = If(c) <then_branch = a () => (float[1,1,4,4] u) {u = GridSample<mode = "bicubic">(x, g)},
                   else_branch = b () => (float[1,1,4,4] v) {v = Neg(x)}>}"""
    raised = oracle.converted(oracle.parse(18, graph), 20)
    for c in (True, False):
        feeds = {**oracle.feeds(raised), "c": np.array(c)}
        oracle.assert_close(oracle.run(raised, feeds), oracle.run(oracle.parse(18, graph), feeds))
