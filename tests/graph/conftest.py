"""What the opset tests share: models as text, and onnxruntime as the oracle before and after a conversion.

A test with the arguments `case` and `opset` runs for every entry of its module's CASES and every opset that can hold
it. An entry is a dict:
    id, opset   its name, and the opset it is written for
    graph       as onnx.parser reads it: ``(float[2, N] x) => (float[2, N] y) {y = Gelu(x)}``; N is 4 in the run
    eps         allowed difference, in machine epsilons of the largest value; without it, none
    feeds       inputs that must not be random
    lowest      the lowest opset that can hold it, if not 11
"""

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest

from torch_onnx_compat.graph.opset.convert import convert

TARGETS = (22, 20, 17, 15, 13, 12, 11)


def pytest_generate_tests(metafunc):
    if {"case", "opset"} <= set(metafunc.fixturenames):
        metafunc.parametrize(
            ("case", "opset"),
            [
                pytest.param(case, opset, id=f"{case['id']} to {opset}")
                for case in metafunc.module.CASES
                for opset in TARGETS
                if case.get("lowest", 11) <= opset < case["opset"]
            ],
        )


@pytest.fixture
def oracle():
    return Oracle


class Oracle:
    @staticmethod
    def parse(opset, graph):
        if opset > onnx.defs.onnx_opset_version():
            pytest.skip(f"the installed onnx ends at opset {onnx.defs.onnx_opset_version()}")
        return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]> g {graph}')

    @staticmethod
    def converted(proto, opset):
        model = ir.from_proto(proto)
        convert(model, opset)
        return ir.to_proto(model)

    @staticmethod
    def ops(proto):
        return [node.op_type for node in proto.graph.node]

    @staticmethod
    def session(proto, **settings):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        for name, value in settings.items():
            setattr(options, name, value)
        return onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])

    @staticmethod
    def run(proto, feeds):
        return Oracle.session(proto).run(None, feeds)

    @staticmethod
    def optimized(proto, folder):
        """The operators that onnxruntime's optimiser leaves."""
        path = str(folder / "optimized")
        Oracle.session(proto, optimized_model_filepath=path)
        return Oracle.ops(onnx.load(path))

    @staticmethod
    def feeds(proto):
        rng = np.random.default_rng(0)
        return {value.name: _random(rng, value.type.tensor_type) for value in proto.graph.input}

    @staticmethod
    def check(proto):
        onnx.checker.check_model(proto, full_check=True)

    @staticmethod
    def assert_written_for(proto, opset):
        onnx.checker.check_model(proto, full_check=True)
        imports = onnx.helper.make_opsetid("", opset)
        assert {o.domain: o.version for o in proto.opset_import}[""] == opset
        assert proto.ir_version <= onnx.helper.find_min_ir_version_for([imports])

    @staticmethod
    def assert_close(actual, expected, eps=0):
        assert len(actual) == len(expected)
        for a, e in zip(actual, expected, strict=True):
            assert a.dtype == e.dtype
            if eps == 0:
                np.testing.assert_array_equal(a, e, strict=True)
            else:
                scale = np.abs(e[np.isfinite(e)]).max(initial=0)
                np.testing.assert_allclose(a, e, rtol=0, atol=eps * np.finfo(e.dtype).eps * scale, strict=True)

    @staticmethod
    def assert_same_numbers(proto, opset, *, eps=0, feeds=()):
        lowered = Oracle.converted(proto, opset)
        Oracle.assert_written_for(lowered, opset)
        given = {**Oracle.feeds(proto), **dict(feeds)}
        Oracle.assert_close(Oracle.run(lowered, given), Oracle.run(proto, given), eps)
        return lowered


def _random(rng, tensor_type):
    shape = [dim.dim_value if dim.HasField("dim_value") else 4 for dim in tensor_type.shape.dim]
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor_type.elem_type)
    if np.issubdtype(dtype, np.floating):
        return np.asarray(rng.standard_normal(shape) * 2, dtype)
    integers = rng.integers(0 if np.issubdtype(dtype, np.unsignedinteger) else -5, 6, shape)
    return np.asarray(integers % 2 == 0 if dtype == np.bool_ else integers, dtype)
