"""Random programs: what is found of sizes holds at every run, and a slimmed graph computes the same numbers."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import HealthCheck, given, settings
from slim_programs import programs, run, session

from torch_onnx_compat.graph.slim.facts import Facts
from torch_onnx_compat.graph.slim.infer import infer
from torch_onnx_compat.graph.slim.size import Polynomial
from torch_onnx_compat.graph.slim.slim import slim

CHECKS = settings(deadline=None, max_examples=120, suppress_health_check=list(HealthCheck))


@CHECKS
@given(programs())
def test_a_slimmed_graph_computes_the_same(program):
    proto, tried = program
    model = ir.from_proto(proto)
    slim(model)
    slimmed = ir.to_proto(model)
    before, after = session(proto), session(slimmed)
    for sizes in tried:
        expected = run(before, sizes)
        if expected is not None:
            found = run(after, sizes)
            assert found is not None, sizes
            for one, other in zip(expected, found, strict=True):
                np.testing.assert_array_equal(other, one, strict=True)


@CHECKS
@given(programs())
def test_what_is_found_of_sizes_holds_at_every_run(program):
    proto, tried = program
    model = ir.from_proto(proto)
    facts = Facts(20)
    facts.begin(model.graph, is_main=True)
    values = []
    for node in model.graph:
        if node.op_type != "Constant":
            infer(facts, node)
            values += [value for value in node.outputs if facts.shape(value) is not None]
    names = {info.name for info in proto.graph.output}
    inferred = onnx.shape_inference.infer_shapes(proto)
    types = {info.name: info for info in inferred.graph.value_info}
    shown = [value for value in values if value.name in names or value.name in types]
    proto.graph.output.extend(
        onnx.helper.make_tensor_value_info(v.name, types[v.name].type.tensor_type.elem_type, None)
        for v in shown
        if v.name not in names
    )
    opened = session(proto)
    order = [output.name for output in opened.get_outputs()]
    for sizes in tried:
        outputs = run(opened, sizes)
        if outputs is None:
            continue
        arrays = dict(zip(order, outputs, strict=True))
        known = dict(sizes)
        for value in shown:
            actual = arrays[value.name]
            shape = facts.shape(value)
            assert len(shape) == actual.ndim
            for place, (size, found) in enumerate(zip(shape, actual.shape, strict=True)):
                assert number_of(size, known, (value, place), found) == found, (value.name, shape, actual.shape)
            numbers = facts.numbers(value)
            if numbers is not None:
                wanted = [number_of(n, known) for n in numbers.reshape(-1).tolist()]
                np.testing.assert_array_equal(np.array(wanted).reshape(actual.shape), actual)


def number_of(size, known, key=None, found=None):
    """The number that a size has at a run; an axis whose size nothing else says is learnt from the run."""
    if not isinstance(size, Polynomial):
        return size
    total = 0
    for monomial, coefficient in size.terms.items():
        for unknown in monomial:
            coefficient *= number_of_unknown(unknown, known, key, found)
        total += coefficient
    return total


def number_of_unknown(unknown, known, key, found):
    if unknown.key in known:
        return known[unknown.key]
    if unknown.key == key:
        number = known[unknown.key] = found
    elif unknown.key[0] == "floor":
        _, number, divisor = unknown.key
        number = number_of(number, known) // number_of(divisor, known)
    elif unknown.key[0] == "joined":
        sides = {number_of(side, known) for side in unknown.key[1]}
        (number,) = sides - {1} or {1}
    elif unknown.key[0] == "axis":
        number = number_of(unknown.key[1], known)
    else:
        pytest.fail(f"{unknown.key} is not known")
    assert not unknown.is_natural or number >= 0
    return number
