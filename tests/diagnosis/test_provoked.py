"""Errors made here and now by torch's exporters, onnx and onnxruntime are recognised."""

import io
import warnings

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim

from torch_onnx_compat import CompatError, export_compat
from torch_onnx_compat.diagnosis import explain

IMAGE = torch.linspace(-1, 1, 2 * 3 * 8 * 8).reshape(2, 3, 8, 8)
NOISE = ("legacy TorchScript", "feature will be removed", "deprecat")


class Call(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


class CallOne(Call):
    def forward(self, x):
        return self.function(x)


def torchscript(model, *args, opset=17, **options):
    model = model if isinstance(model, nn.Module) else Call(model)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            torch.onnx.export(model, args, io.BytesIO(), dynamo=False, opset_version=opset, **options)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    texts = [str(warning.message) for warning in caught]
    return "\n".join(text for text in texts if not any(noise in text for noise in NOISE))


def capture(model, *args, **options):
    model = model if isinstance(model, nn.Module) else CallOne(model)
    options.setdefault("strict", False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(Exception) as caught:  # noqa: PT011
            torch.export.export(model, args, **options)
    return f"{type(caught.value).__name__}: {caught.value}"


def dynamo(function, *args, **options):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        try:
            torch.onnx.export(CallOne(function).eval(), args, None, dynamo=True, verbose=False, **options)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    return "\n".join(str(warning.message) for warning in found)


def parse(body, opset=17, ir=8, domains=""):
    return onnx.parser.parse_model(f'<ir_version: {ir}, opset_import: ["" : {opset}{domains}]> {body}')


def run(model, **feeds):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    source = model if isinstance(model, (str, bytes)) else model.SerializeToString()
    with pytest.raises(Exception) as caught:  # noqa: PT011
        onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"]).run(None, feeds)
    return f"{type(caught.value).__name__}: {caught.value}"


def check(model):
    with pytest.raises(Exception) as caught:  # noqa: PT011
        onnx.checker.check_model(model, full_check=True)
    return f"{type(caught.value).__name__}: {caught.value}"


def convert(model, opset):
    with pytest.raises(Exception) as caught:  # noqa: PT011
        onnx.version_converter.convert_version(model, opset)
    return f"{type(caught.value).__name__}: {caught.value}"


def zeros(*shape):
    return np.zeros(shape, np.float32)


def weightless():
    model = parse("g (float[1,3] x) => (float[1,3] y) { y = Add(x, w) }")
    tensor = model.graph.initializer.add(name="w", data_type=1, dims=[1, 3], data_location=1)
    tensor.external_data.add(key="location", value="nowhere.data")
    return model


class Star(nn.Module):
    def forward(self, *xs):
        return xs[0] + xs[1]


class NotATensor:
    pass


RELU = "g (float[1,3] x) => (float[1,3] y) { y = Relu(x) }"
TWO = "g (float[a,b] x, float[c,d] w) => (float[e,f] y) { y = "

TORCHSCRIPT = {
    "cummax": (lambda: torchscript(lambda x: x.cummax(1)[0], IMAGE), "torchscript_operator"),
    "fft": (lambda: torchscript(lambda x: torch.fft.rfft(x).abs(), IMAGE), "torchscript_operator"),
    "svd": (lambda: torchscript(lambda x: torch.linalg.svd(x)[1], torch.eye(3)), "torchscript_operator"),
    "view of bits": (lambda: torchscript(lambda x: x.view(torch.int32) & 3, IMAGE), "view_of_bits"),
    "fill": (lambda: torchscript(lambda x: torch.fill(x, 2.0), IMAGE), "no_operator_of_these_types"),
    "affine grid": (
        lambda: torchscript(lambda t: F.affine_grid(t, (2, 3, 4, 4)), torch.ones(2, 2, 3)),
        "torchscript_later_opset",
    ),
    "fold": (
        lambda: torchscript(lambda t: F.fold(t, (4, 4), (2, 2)), torch.ones(1, 12, 9), opset=16),
        "torchscript_later_opset",
    ),
    "average pool": (lambda: torchscript(nn.AdaptiveAvgPool2d((3, 5)), IMAGE), "adaptive_pool_factor"),
    "maximum pool": (lambda: torchscript(nn.AdaptiveMaxPool2d((3, 5)), IMAGE), "adaptive_pool_factor"),
    "pool of a dynamic size": (
        lambda: torchscript(nn.AdaptiveAvgPool2d(2), IMAGE, input_names=["x"], dynamic_axes={"x": {2: "h", 3: "w"}}),
        "adaptive_pool_unknown_size",
    ),
    "volume": (
        lambda: torchscript(
            lambda a, g: F.grid_sample(a, g, align_corners=False), torch.ones(1, 2, 3, 4, 5), torch.ones(1, 3, 4, 5, 3)
        ),
        "grid_sample_volumetric",
    ),
    "grouped queries": (
        lambda: torchscript(
            lambda q, k: F.scaled_dot_product_attention(q, k, k, enable_gqa=True),
            torch.ones(1, 4, 3, 8),
            torch.ones(1, 2, 3, 8),
        ),
        "attention_gqa",
    ),
    "packed sequence": (
        lambda: torchscript(
            lambda x, n: nn.utils.rnn.pack_padded_sequence(x, n, batch_first=True).data,
            torch.ones(2, 4, 3),
            torch.tensor([4, 2]),
        ),
        "packed_sequence",
    ),
    "data parallel": (lambda: torchscript(nn.DataParallel(nn.ReLU()), IMAGE), "data_parallel"),
    "stft": (
        lambda: torchscript(
            lambda x: torch.stft(x, 8, torch.ones(8).numel(), window=torch.ones(8), return_complex=True).abs(),
            torch.ones(1, 32),
        ),
        "complex_scalar_type",
    ),
    "unpool": (
        lambda: torchscript(lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2), IMAGE),
        {"max_unpool", "torchscript_operator"},  # torch 2.6 has no such check
    ),
    "if": (lambda: torchscript(lambda x: x if x.sum() > 0 else -x, IMAGE), "tracer_warning"),
    "int": (lambda: torchscript(lambda x: x * int(x[0, 0, 0, 0]), IMAGE), "tracer_warning"),
    "item": (lambda: torchscript(lambda x: x * x[0, 0, 0, 0].item(), IMAGE), "tracer_warning"),
    "for": (lambda: torchscript(lambda x: torch.stack([t * 2 for t in x]), IMAGE), "tracer_iterates"),
    "constant": (lambda: torchscript(lambda x: x + torch.tensor([1.0, 2.0]).sum(), IMAGE), "tracer_constant"),
    "computed kernel": (
        lambda: torchscript(
            lambda x, w: F.conv2d(x, w[:, :, : w.shape[2]]),
            IMAGE,
            torch.ones(4, 3, 3, 3),
            input_names=["x", "w"],
            dynamic_axes={"w": {2: "k", 3: "l"}},
        ),
        "kernel_unknown_shape",
    ),
    "stable sort": (lambda: torchscript(lambda x: torch.sort(x, stable=True)[0], IMAGE), "sort_out"),
    "constant output": (lambda: torchscript(lambda x: {"a": 1, "b": x}, IMAGE), "output_not_traced"),
    "opset 40": (lambda: torchscript(nn.ReLU(), IMAGE, opset=40), "opset_unknown"),
    "axis of nothing": (
        lambda: torchscript(nn.ReLU(), IMAGE, input_names=["x"], dynamic_axes={"y": {0: "n"}}),
        "dynamic_axes_name",
    ),
    "transformer": (
        lambda: torchscript(nn.TransformerEncoderLayer(8, 2, batch_first=True).eval(), torch.ones(1, 3, 8)),
        "attention_causal_traced",
    ),
    "norm without statistics": (
        lambda: torchscript(nn.BatchNorm2d(3, track_running_stats=False).eval(), IMAGE),
        {"norm_in_train_mode", "tracer_warning"},
    ),
}

DYNAMO = {
    "if": (lambda: capture(lambda x: x if x.sum() > 0 else -x, IMAGE), "data_dependent"),
    "int": (lambda: capture(lambda x: torch.zeros(int(x.sum())), IMAGE), "data_dependent"),
    "strict if": (
        lambda: capture(lambda x: x if x.max() > 0 else -x, IMAGE, strict=True),
        "data_dependent",
    ),
    "view": (
        lambda: capture(lambda x: x.view(2, -1) * 2, IMAGE, dynamic_shapes=({0: Dim("batch")},)),
        "constraints_violated",
    ),
    "size of 1": (
        lambda: capture(lambda x: x * 2, IMAGE[:1], dynamic_shapes=({0: Dim("batch")},)),
        "constraints_violated",
    ),
    "decision on a size": (
        lambda: capture(lambda x: x * 2 if x.shape[0] > 5 else x, IMAGE, dynamic_shapes=({0: Dim("batch", max=10)},)),
        "constraints_violated",
    ),
    "unknown name": (
        lambda: capture(nn.ReLU(), IMAGE, dynamic_shapes={"image": {0: Dim("batch")}}),
        "dynamic_shapes_keys",
    ),
    "star": (
        lambda: capture(Star(), IMAGE, IMAGE, dynamic_shapes=({0: Dim("b")}, {0: Dim("b")})),
        "dynamic_shapes_structure",
    ),
    "numpy": (lambda: capture(lambda x: x + torch.from_numpy(x.numpy()), IMAGE), "numpy_in_forward"),
    "object": (lambda: capture(lambda x: x, NotATensor()), "input_type"),
    "generator": (lambda: capture(lambda x: (t for t in x), IMAGE), "output_type"),
    "cummax": (lambda: dynamo(lambda x: x.cummax(1)[0], IMAGE), "dynamo_function_missing"),
    "maximum pool": (
        lambda: dynamo(lambda x: F.adaptive_max_pool2d(x, (3, 5)), IMAGE),
        "dynamo_function_missing",
    ),
    "reflect": (lambda: dynamo(lambda x: F.pad(x, (1, 1), mode="reflect"), IMAGE), "reflect_pad_rank"),
    "dynamic_axes": (
        lambda: dynamo(lambda x: x * 2, IMAGE, dynamic_axes={"x": {0: "n"}}, input_names=["x"]),
        "dynamic_axes_deprecated",
    ),
}

ONNX = {
    "undefined": (lambda: check(parse("g (float[1,3] x) => (float[1,3] y) { y = Relu(q) }")), "not_sorted"),
    "twice": (
        lambda: check(parse("g (float[1,3] x) => (float[1,3] y) { a = Relu(x) a = Relu(x) y = Relu(a) }")),
        "not_ssa",
    ),
    "no operator": (
        lambda: check(parse("g (float[1,3] x) => (float[1,3] y) { y = Gelu(x) }")),
        "operator_unregistered",
    ),
    "no domain": (lambda: check(parse("g (float[1,3] x) => (float[1,3] y) { y = a.Relu(x) }")), "domain_missing"),
    "attribute": (
        lambda: check(parse("g (float[1,3] x) => (float[1,3] y) { y = Relu<foo=1>(x) }")),
        "attribute_unknown",
    ),
    "no attribute": (
        lambda: check(parse("g (float[1,3] x) => (float[1,3] y) { y = Concat(x) }")),
        "attribute_missing",
    ),
    "no input": (lambda: check(parse("g (float[1,3] x) => (float[1,3] y) { y = Add(x) }")), "input_count"),
    "ir": (lambda: check(parse(RELU, ir=99)), "ir_version"),
    "types": (
        lambda: check(parse("g (float[1,3] x, float16[1,3] w) => (float[2,3] y) { y = Concat<axis=0>(x, w) }")),
        "inference_type",
    ),
    "shapes": (
        lambda: check(parse("g (float[1,3] x, float[5,3] w) => (float[2,3] y) { y = MatMul(x, w) }")),
        "inference_shape",
    ),
    "pad": (
        lambda: convert(
            parse("g (float[1,3] x) => (float[1,5] y) { p = Constant<value_ints=[0,1,0,1]>() y = Pad(x, p) }", 18), 17
        ),
        "converter_adapter",
    ),
    "grid": (
        lambda: convert(
            parse("g (float[1,3,4,4] x, float[1,4,4,2] s) => (float[1,3,4,4] y) { y = GridSample(x, s) }", 20), 16
        ),
        "converter_adapter",
    ),
    "norm": (
        lambda: convert(parse("g (float[4,3] x, float[3] s) => (float[4,3] y) { y = LayerNormalization(x, s) }"), 16),
        "converter_adapter",
    ),
    "constant": (
        lambda: convert(
            parse("g (float[4,3] x) => (float[4,1] y) { a = Constant<value_ints=[1]>() y = ReduceMean(x, a) }", 18), 13
        ),
        "converter_attribute",
    ),
}

ONNXRUNTIME = {
    "reshape": (
        lambda: run(
            parse("g (float[b,6] x) => (float[n,3,2] y) { s = Constant<value_ints=[1,3,2]>() y = Reshape(x, s) }"),
            x=zeros(4, 6),
        ),
        "reshape_baked",
    ),
    "size": (lambda: run(parse(RELU), x=zeros(2, 3)), "input_shape"),
    "rank": (lambda: run(parse(RELU), x=zeros(1, 3, 1)), "input_shape"),
    "dtype": (lambda: run(parse(RELU), x=np.zeros((1, 3))), "input_dtype"),
    "name": (lambda: run(parse(RELU), z=zeros(1, 3)), "input_missing"),
    "broadcast": (lambda: run(parse(TWO + "Add(x, w) }"), x=zeros(2, 3), w=zeros(3, 3)), "broadcast"),
    "matmul": (lambda: run(parse(TWO + "MatMul(x, w) }"), x=zeros(2, 3), w=zeros(4, 3)), "matmul_mismatch"),
    "concat": (lambda: run(parse(TWO + "Concat<axis=0>(x, w) }"), x=zeros(2, 3), w=zeros(3, 4)), "concat_mismatch"),
    "concat of ranks": (
        lambda: run(
            parse("g (float[n,3] x, int64[r] s) => (float[a,b] y) { z = Reshape(x, s) y = Concat<axis=0>(x, z) }"),
            x=zeros(2, 3),
            s=np.array([6]),
        ),
        "concat_ranks",
    ),
    "gather": (
        lambda: run(
            parse("g (float[n,3] x, int64[m] w) => (float[a,b] y) { y = Gather<axis=0>(x, w) }"),
            x=zeros(2, 3),
            w=np.array([5]),
        ),
        "index_bounds",
    ),
    "scatter": (
        lambda: run(
            parse("g (float[n,3] x, int64[m,1] i, float[m,3] u) => (float[n,3] y) { y = ScatterND(x, i, u) }"),
            x=zeros(2, 3),
            i=np.array([[7]]),
            u=zeros(1, 3),
        ),
        "index_bounds",
    ),
    "expand": (
        lambda: run(
            parse("g (float[n,3] x, int64[k] w) => (float[a,b] y) { y = Expand(x, w) }"),
            x=zeros(2, 3),
            w=np.array([5, 3]),
        ),
        "expand_mismatch",
    ),
    "squeeze": (
        lambda: run(
            parse("g (float[n,3] x) => (float[3] y) { a = Constant<value_ints=[0]>() y = Squeeze(x, a) }"),
            x=zeros(2, 3),
        ),
        "squeeze_mismatch",
    ),
    "split": (
        lambda: run(
            parse(
                "g (float[n,3] x) => (float[a,3] y, float[b,3] z) "
                "{ s = Constant<value_ints=[2,2]>() y, z = Split<axis=0>(x, s) }"
            ),
            x=zeros(5, 3),
        ),
        "split_mismatch",
    ),
    "channels": (
        lambda: run(
            parse("g (float[n,3,4,4] x, float[2,4,3,3] w) => (float[n,2,a,b] y) { y = Conv(x, w) }"),
            x=zeros(1, 3, 4, 4),
            w=zeros(2, 4, 3, 3),
        ),
        "conv_channels",
    ),
    "small": (
        lambda: run(
            parse("g (float[n,3,a,b] x, float[2,3,9,9] w) => (float[n,2,c,d] y) { y = Conv(x, w) }"),
            x=zeros(1, 3, 4, 4),
            w=zeros(2, 3, 9, 9),
        ),
        "conv_too_small",
    ),
    "modulo": (
        lambda: run(
            parse("g (int64[n] x, int64[n] y) => (int64[n] z) { z = Mod(x, y) }"),
            x=np.ones(2, np.int64),
            y=np.zeros(2, np.int64),
        ),
        "integer_division",
    ),
    "topk": (
        lambda: run(
            parse("g (float[n] x) => (float[k] y, int64[k] i) { k0 = Constant<value_ints=[5]>() y, i = TopK(x, k0) }"),
            x=zeros(3),
        ),
        "topk_too_large",
    ),
    "half": (
        lambda: run(parse("g (float[1,3] x, float16[1,3] w) => (float[2,3] y) { y = Concat<axis=0>(x, w) }")),
        "type_bound",
    ),
    "output type": (lambda: run(parse("g (float16[1,3] x) => (float[1,3] y) { y = Relu(x) }")), "type_bound"),
    "element type": (lambda: run(parse("g (int8[1,3] x) => (int8[1,3] y) { y = Sin(x) }")), "type_invalid"),
    "custom": (
        lambda: run(parse("g (float[1,3] x) => (float[1,3] y) { y = acme.Foo(x) }", domains=', "acme" : 1')),
        "custom_operator",
    ),
    "opset": (lambda: run(parse(RELU, opset=40)), "opset_unreleased"),
    "ir": (lambda: run(parse(RELU, ir=99)), "ir_version"),
    "garbage": (lambda: run(b"no model at all"), "protobuf_broken"),
    "no file": (lambda: run("nowhere.onnx"), "file_missing"),
    "twice": (
        lambda: run(parse("g (float[1,3] x) => (float[1,3] y) { a = Relu(x) a = Relu(x) y = Relu(a) }")),
        "not_ssa",
    ),
    "undefined": (lambda: run(parse("g (float[1,3] x) => (float[1,3] y) { y = Relu(q) }")), "not_sorted"),
    "no weights": (lambda: run(weightless()), "external_data_missing"),
    "resize": (lambda: run(parse("g (float[n] x) => (float[n] y) { y = Resize(x) }")), "resize_inputs"),
}


@pytest.mark.parametrize(
    ("provoke", "name"),
    [
        pytest.param(*case, id=f"{tool}: {label}")
        for tool, cases in (("torchscript", TORCHSCRIPT), ("dynamo", DYNAMO), ("onnx", ONNX), ("ort", ONNXRUNTIME))
        for label, case in cases.items()
    ],
)
def test_provoked(provoke, name, capfd):
    text = provoke()
    found = [diagnosis.name for diagnosis in explain(text)]
    assert found, text
    assert found[0] in (name if isinstance(name, set) else {name}), text


def test_an_export_that_fails_says_what_to_do():
    class Model(nn.Module):
        def forward(self, x):
            return torch.linalg.svd(x[0, 0])[1]

    with pytest.raises(CompatError, match="svd") as caught:
        export_compat(Model(), (IMAGE,), exporter="torchscript")
    assert (
        "diagnosis: the TorchScript exporter has no translation of this operator; pass allow_approximate=True"
        in str(caught.value)
    )


@pytest.mark.parametrize("exporter", ["torchscript", "dynamo", "auto"])
def test_an_entry_that_waits_for_leave_is_the_remedy(exporter):
    remedy = r"of this operator; pass allow_approximate=True, which admits the entry named above, or give a symbolic"
    with pytest.raises(CompatError, match=remedy) as found:
        export_compat(lambda x: torch.linalg.svd(x)[1], torch.randn(2, 3, 3), exporter=exporter)
    assert "take exporter=" not in str(found.value)
