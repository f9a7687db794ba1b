"""What Python makes of a size, a plain number or a text: files that hold the example's, or never came to make it."""

import math

import numpy as np
import pytest
import torch
from symbolic_runs import Module

from torch_onnx_compat import CompatError, export_compat

SIZES = (1, 2, 3, 4, 5, 6, 7, 9, 16, 23, 31, 40, 64, 65, 100, 200, 257, 300)


def export(function, exporter, x=None, **kwargs):
    """The result; None where the export is refused. A file is right at all sizes that the model takes."""
    x = torch.randn(4, 3) if x is None else x
    try:
        result = export_compat(Module(function).eval(), x, dynamic={"x": {0: "n"}}, exporter=exporter, **kwargs)
    except CompatError:
        return None
    for size in SIZES:
        other = torch.randn(size, *x.shape[1:])
        try:
            wanted = function(other)
        except AssertionError:
            continue
        np.testing.assert_allclose(result(other)[0], wanted, rtol=1e-4, atol=1e-5)
    return result


def rounds(x):
    for _ in range(x.shape[0] % 3):
        x = x * 2
    return x


def with_handler(x):
    try:
        bits = x.shape[0].bit_length()
    except AttributeError:
        bits = 3
    return x * 2 if bits > 5 else x


def checked(x):
    assert x.shape[0] % 4 == 0
    return x * (2, 3, 5, 7)[x.shape[0] % 4]


MAY_BE_REFUSED = {
    "rounds": rounds,
    "item of a tuple": lambda x: x * (1, 1, 1, 2)[x.shape[0] % 4],
    "item of a text": lambda x: x * (2 if "aaab"[x.shape[0] % 4] == "b" else 1),
    "item at a product": lambda x: x * (1, 1, 1, 1, 1, 1, 3)[x.shape[0] * x.shape[1] % 7],
    "numpy's int": lambda x: x * (2 if np.int8(x.shape[0] % 256 - 128) > 0 else 3),
    "remainder of a fraction": lambda x: x * (2 if int(x.shape[0] * 0.29 * 100) % 3 == 0 else 3),
    "length of a list": lambda x: x * len([0] * (x.shape[0] // 8)),
    "bits of an int": lambda x: x * (2 if isinstance(x.shape[0], int) and x.shape[0].bit_length() > 5 else 1),
    "item of what a type allows": lambda x: x * [1, 2][isinstance(x.shape[0], int) and x.shape[0].bit_length() > 5],
    "digits of an int": lambda x: x * (len(str(x.shape[0])) if isinstance(x.shape[0], int) else 1),
    "numpy's scalar": lambda x: x * (2 if np.isscalar(x.shape[0]) and np.abs(x.shape[0]) > 64 else 1),
}
ARE_RIGHT = {
    "sign of a quotient": lambda x: x * 2 if math.copysign(1, 10 - x.shape[0] // 8) < 0 else x,
    "no symbol": lambda x: x * 2 if not isinstance(x.shape[0], torch.SymInt) and x.shape[0] > 64 else x,
    "one of two types": lambda x: x * (x.shape[0] + 1) if isinstance(x.shape[0], int | float) else x,
    "half as an int": lambda x: x * int(x.shape[0] / 2) + x[: int(x.shape[0] // 2)].sum(),
    "the model's own check": checked,
}


@pytest.mark.parametrize("name", MAY_BE_REFUSED)
def test_no_file_holds_the_examples_number(name, exporter):
    export(MAY_BE_REFUSED[name], exporter)


@pytest.mark.parametrize("name", ARE_RIGHT)
def test_what_the_file_computes_is_exported(name, exporter):
    assert export(ARE_RIGHT[name], exporter)


OF_TENSORS = {
    "an error that nobody raises": with_handler,
    "an attribute of numbers": lambda x: x * 2 if hasattr(x.shape[0], "bit_count") and x.shape[0] > 50 else x,
    "an attribute of tensors": lambda x: (
        x * 2 if not hasattr(x.shape[0], "item") and x.shape[0].bit_length() > 5 else x
    ),
    "is_tensor": lambda x: x * 2 if not torch.is_tensor(x.shape[0]) and x.shape[0].bit_length() > 5 else x,
}


@pytest.mark.parametrize("name", OF_TENSORS)
def test_a_size_is_no_tensor_to_the_code_that_asks(name):
    function = OF_TENSORS[name]
    assert export(function, "torchscript")


def test_each_of_few_numbers_is_tried():
    result = export(lambda x: x * (2, 2, 2, 2)[x.shape[0] % 4], "dynamo")
    assert {size % 4 for size in result.axes[0].tried} == {0, 1, 2, 3}


def test_a_number_of_many_is_refused_by_name():
    with pytest.raises(
        CompatError, match=r"test_taken_numbers\.py:\d+ makes a plain number of Mod\(n, 99\)|Mod\(n, 99\)"
    ):
        export_compat(
            Module(lambda x: x * np.ones(99)[x.shape[0] % 99]).eval(),
            *(torch.randn(4, 3),),
            dynamic={"x": {0: "n"}},
            exporter="dynamo",
        )


def test_the_caller_may_accept_the_examples_number():
    def function(x):
        return x * (2 if np.int64(x.shape[0] % 99) == 90 else 1)

    with pytest.raises(CompatError) as error:
        export_compat(Module(function).eval(), torch.randn(4, 3), dynamic={"x": {0: "n"}}, exporter="dynamo")
    place = str(error.value).partition("allow_baked=['")[2].partition("'")[0]
    options = {"dynamic": {"x": {0: "n"}}, "exporter": "dynamo", "allow_baked": [place]}
    assert export_compat(Module(function).eval(), torch.randn(4, 3), **options).model_bytes


def test_the_length_of_a_repeated_list_is_computed_in_the_file(exporter):
    model = Module(MAY_BE_REFUSED["length of a list"]).eval()
    options = {"dynamic": {"x": {0: "n"}}, "exporter": exporter, "verify": False}
    session = export_compat(model, torch.randn(4, 3), **options).session()
    for size in (1, 7, 8, 16, 40):
        x = torch.randn(size, 3)
        torch.testing.assert_close(torch.from_numpy(session.run(None, {"x": x.numpy()})[0]), model(x))


@pytest.mark.parametrize("name", ["item of a tuple", "item of a text", "numpy's int"])
def test_no_file_without_a_proof_holds_it(name, exporter):
    model, options = Module(MAY_BE_REFUSED[name]).eval(), {"dynamic": {"x": {0: "n"}}, "exporter": exporter}
    with pytest.raises(CompatError, match=r"would freeze|captured for sizes up to"):
        export_compat(model, torch.randn(4, 3), verify=False, **options)
