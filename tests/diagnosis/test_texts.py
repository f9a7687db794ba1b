"""Texts that users reported, the same errors in other words, and errors that are none of this package's business."""

import pytest

from torch_onnx_compat.diagnosis import explain, hint, with_hint
from torch_onnx_compat.errors import UnsupportedError

REPORTED = [
    (
        "Exporting the operator 'aten::cummax' to ONNX opset version 17 is not supported. Please feel free to request "
        "support or submit a pull request on PyTorch GitHub",
        "torchscript_operator",
    ),
    (
        "Exporting the operator 'aten::col2im' to ONNX opset version 16 is not supported. Support for this operator "
        "was added in version 18, try exporting with this version.",
        "torchscript_later_opset",
    ),
    (
        "No ONNX function found for <OpOverload(op='aten.cummax', overload='default')>. Failure message: No "
        "decompositions registered for the real-valued input",
        "dynamo_function_missing",
    ),
    (
        "TypeError: torchvision_roi_align() takes from 3 to 6 positional arguments but 7 were given",
        "dynamo_torchvision_signature",
    ),
    (
        "Failed to export the model with torch.export. \x1b[96mThis is step 1/3\x1b[0m of exporting the model to ONNX.",
        "dynamo_step_capture",
    ),
    (
        "Failed to convert the exported program to an ONNX model. \x1b[96mThis is step 3/3\x1b[0m of exporting",
        "dynamo_step_convert",
    ),
    (
        "Could not guard on data-dependent expression Eq(u0, 1) (unhinted: Eq(u0, 1)). (Size-like symbols: none)",
        "data_dependent",
    ),
    (
        'Constraints violated (batch)! For more information, run with TORCH_LOGS="+dynamic". Not all values of batch '
        "= L['x'].size()[0] in the specified range batch <= 10 are valid because batch was inferred to be a constant "
        "(1).",
        "constraints_violated",
    ),
    (
        "Received user-specified dim hint Dim.DYNAMIC(min=None, max=None), but tracing inferred a static shape of 2 "
        "for dimension inputs['x'].shape[0].",
        "hint_inferred_static",
    ),
    (
        "When `dynamic_shapes` is specified as a dict, its top-level keys must be the arg names ['x'] of `inputs`, but "
        "here they are ['image'].",
        "dynamic_shapes_keys",
    ),
    (
        "Detected mismatch between the structure of `inputs` and `dynamic_shapes`: `inputs` has 1 elements, but "
        "`dynamic_shapes` has 2 elements",
        "dynamic_shapes_structure",
    ),
    (
        "# 'dynamic_axes' is not recommended when dynamo=True, and may lead to 'torch._dynamo.exc.UserError: "
        "Constraints violated.' Supply the 'dynamic_shapes' argument instead if export is unsuccessful.",
        "dynamic_axes_deprecated",
    ),
    (
        "Setting ONNX exporter to use operator set version 18 because the requested opset_version 16 is a lower "
        "version than we have implementations for.",
        "opset_raised",
    ),
    ("adapter_lookup: Assertion `false` failed: No Adapter To Version $17 for Pad", "converter_adapter"),
    ("adapter_lookup: Assertion `false` failed: No Adapter From Version $20 for GridSample", "converter_adapter"),
    ("No Previous Version of LayerNormalization exists", "converter_adapter"),
    (
        "TracerWarning: Converting a tensor to a Python boolean might cause the trace to be incorrect. We can't record "
        "the data flow of Python values, so this value will be treated as a constant in the future.",
        "tracer_warning",
    ),
    (
        "Unsupported: ONNX export of operator adaptive_avg_pool2d, output size that are not factor of input size.",
        "adaptive_pool_factor",
    ),
    (
        "Unsupported: ONNX export of operator adaptive_avg_pool2d, input size not accessible.",
        "adaptive_pool_unknown_size",
    ),
    ("Unsupported: ONNX export of operator GridSample with 5D volumetric input.", "grid_sample_volumetric"),
    ("conversion of scaled_dot_product_attention not implemented if enable_gqa is True", "attention_gqa"),
    (
        "ONNX export mode is set to TrainingMode.EVAL, but operator 'instance_norm' is set to train=True. Exporting "
        "with train=True.",
        "norm_in_train_mode",
    ),
    (
        "Exporting a model to ONNX with a batch_size other than 1, with a variable length with LSTM can cause an error "
        "when running the ONNX model with a different batch size.",
        "lstm_batch",
    ),
    (
        "Cannot export individual pack_padded_sequence or pad_packed_sequence; these operations must occur in pairs.",
        "packed_sequence",
    ),
    (
        "zeros(): argument 'size' failed to unpack the object at pos 2 with error \"type must be tuple of ints,but got "
        'FakeTensor"',
        "packed_sequence_fake",
    ),
    (
        "Non-zero status code returned while running Reshape node. Name:'Reshape_367' Status Message: reshape_helper.h "
        "The input tensor cannot be reshaped to the requested shape. Input shape:{8,255,52,52}, requested "
        "shape:{1,3,85,52,52}",
        "reshape_baked",
    ),
    (
        "IIfConditionalOutputLayer inputs must have the same shape. Shapes are [2] and [1].",
        "tensorrt_if_shapes",
    ),
    ("No importer registered for op: Mod. Attempting to import as plugin.", "tensorrt_plugin"),
    ("getPluginCreator could not find plugin Einsum version 1", "tensorrt_plugin"),
    ("slope tensor must be unidirectional broadcastable to input tensor", "tensorrt_prelu"),
    (
        "Type Error: Type parameter (T) of Optype (Concat) bound to different types (tensor(float) and tensor(float16) "
        "in node (Concat_40).",
        "type_bound",
    ),
    (
        "Type Error: Type (tensor(float16)) of output arg (x.1) of node (Cast_3) does not match expected type "
        "(tensor(float)).",
        "type_bound",
    ),
    (
        "Your ONNX model has been generated with INT64 weights, while TensorRT does not natively support INT64. "
        "Attempting to cast down to INT32.",
        "tensorrt_int64",
    ),
    ("One or more weights outside the range of INT32 was clamped", "tensorrt_int64"),
    (
        "torch.nn.DataParallel is not supported by ONNX exporter, please use 'attribute' module to unwrap model",
        "data_parallel",
    ),
    (
        "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu! (when checking "
        "argument for argument index in method wrapper__index_select)",
        "device_mix",
    ),
    ("ONNX export failed on an operator with unrecognized namespace tocp::dbl", "custom_namespace"),
    ("Couldn't export Python operator DeformConvFunction", "custom_namespace"),
    ("ScalarType ComplexFloat is an unexpected tensor scalar type.", "complex_scalar_type"),
    ("STFT does not currently support complex types", "complex_scalar_type"),
    (
        "cond must be a bool, but got a Tensor. For tensor conditions, use torch._check_tensor_all() to assert that "
        "all elements are true.",
        "max_unpool",
    ),
    ("Message onnx.ModelProto exceeds maximum protobuf size of 2GB: 3421772840", "proto_too_large"),
    ("received an input of unsupported type: DynamicCache", "input_type"),
    ("Unsupported attribute type: '<class 'list'>'", "attribute_of_a_size"),
    ("ValueError: training mode is expected to be boolean", "training_mode_of_a_size"),
    (
        "No ONNX function found for <OpOverload(op='aten.view', overload='dtype')>. Failure message: No decompositions "
        "registered for the real-valued input",
        "view_of_bits",
    ),
    ("OpenCV(4.5.1) error: (-215:Assertion failed) Slice layer only supports steps = 1", "opencv_slice_step"),
    ("Unsupported slice axes !", "ncnn_axes"),
    ("Gather not supported yet!", "ncnn_axes"),
    ("get_shape was called on a descriptor::Tensor with dynamic shape", "openvino_dynamic"),
    ("to_shape was called on a dynamic shape.", "openvino_dynamic"),
    (
        "[TRT] Error Code 9: API Usage Error (/fc/DequantizeLinear: input has type Int32 but must have type FP8, FP4, "
        "Int4, Int8)",
        "tensorrt_strong_types_int8",
    ),
    (
        "AttributeError: type object 'tensorrt_bindings.tensorrt.BuilderFlag' has no attribute 'FP16'",
        "tensorrt_no_precision_flags",
    ),
    ("module 'tensorrt' has no attribute 'IInt8EntropyCalibrator2'", "tensorrt_no_precision_flags"),
    (
        "ValueError: Input shape (1, 3, 224, 224) does not match provided input shape: [0, 3, 0, 0]",
        "calibration_shape_of_zeros",
    ),
    ("Unsupported: ONNX export failed on an operator", "torchscript_cut_off"),
    ("[ONNXRuntimeError] : 1 : FAIL : Non-zero status code returned", "onnxruntime_cut_off"),
]

REWORDED = [
    (
        "RuntimeError: Exporting the operator roll to ONNX opset version 9 is not supported. Please open a bug to "
        "request ONNX export support for the missing operator.",
        "torchscript_operator",
    ),
    ("ONNX export failed: Couldn't export operator aten::upsample_bilinear2d", "torchscript_operator"),
    ("ONNX export of the operator aten::triu_indices to opset version 12 is unsupported", "torchscript_operator"),
    (
        "Operator aten::grid_sampler: support for this operator was added in opset version 16, please try exporting "
        "with that version",
        "torchscript_later_opset",
    ),
    (
        "No ONNX function found for <OpOverload(op='aten.sym_size')>. Failure message: No decompositions registered "
        "for the complex-valued input",
        "dynamo_function_missing",
    ),
    ("GuardOnDataDependentSymNode: Could not guard on data-dependent expression u0 > 4", "data_dependent"),
    (
        "Could not extract specialized integer from data-dependent expression u2 (unhinted: u2).",
        "data_dependent",
    ),
    (
        "torch._dynamo.exc.UserError: Dynamic control flow is not supported at the moment. Please use "
        "functorch.experimental.control_flow.cond to explicitly capture the control flow.",
        "data_dependent",
    ),
    (
        "Constraints violated (L['args'][0].size()[0])! You marked L['args'][0].size()[0] as dynamic but your code "
        "specialized it to be a constant (1)",
        "constraints_violated",
    ),
    (
        "torch._dynamo.exc.UserError: Constraints violated! Not all values of dim0 satisfy the generated guard "
        "Ne(L['x'].size()[0], 1) in the specified range",
        "constraints_violated",
    ),
    ("TypeError: unhashable type: non-nested SymInt (at net.py:41)", "dynamo_size_as_key"),
    ("expected compiled_fn to be GraphModule, got <class 'function'>", "dynamo_shared_memory"),
    (
        "Constant twin.rows_0 is mutated in the forward method. Pls register it as buffer",
        "dynamo_written_constant",
    ),
    (
        "TracerWarning: Converting a tensor to a Python index might cause the trace to be incorrect. We can't record "
        "the data flow of Python values, so this value will be treated as a constant in the future.",
        "tracer_warning",
    ),
    (
        "TracerWarning: Iterating over a tensor might cause the trace to be incorrect. Passing a tensor of different "
        "shape won't change the number of iterations executed (and might lead to errors)",
        "tracer_iterates",
    ),
    (
        "Failed to export ONNX: operator adaptive_avg_pool2d, since output size is not factor of input size",
        "adaptive_pool_factor",
    ),
    ("ONNX export of operator GridSample with 5-D volumetric inputs is unsupported", "grid_sample_volumetric"),
    (
        "[E:onnxruntime:, sequential_executor.cc:346 Execute] Non-zero status code returned while running Reshape "
        "node. Name:'/head/Reshape' the input tensor could not be reshaped to the requested shape. Input "
        "shape:{2,768}, requested shape:{1,12,64}",
        "reshape_baked",
    ),
    (
        "INVALID_ARGUMENT : Got invalid dimensions for input: images index: 2 Got: 512 Expected: 640 Please fix either "
        "the inputs or the model.",
        "input_shape",
    ),
    ("INVALID_ARGUMENT : Invalid rank for input: image. Got: 3, Expected: 4", "input_shape"),
    (
        "google.protobuf.message.EncodeError: Failed to serialize proto: model is larger than the maximum protobuf "
        "size of 2GB, save with external data",
        "proto_too_large",
    ),
    (
        "/onnx/version_converter/BaseConverter.h:72: adapter_lookup: Assertion `false` failed: No Adapter From Version "
        "16 for Identity",
        "converter_adapter",
    ),
    (
        "RuntimeError: Expected all tensors to be on the same device, but got mat2 is on cuda:0, different from other "
        "tensors on cpu, found two devices",
        "device_mix",
    ),
    (
        "[09/12/2024-10:11:12] [W] [TRT] onnx2trt_utils.cpp:369: Your ONNX model was generated with INT64 weights. "
        "TensorRT does not natively support INT64. Casting down to INT32.",
        "tensorrt_int64",
    ),
    ("Assertion failed: slope tensor must be unidirectionally broadcastable to the input tensor", "tensorrt_prelu"),
    (
        "NOT_IMPLEMENTED: Could not find an implementation for GridSample(16) node with name 'GridSample_3'",
        "not_implemented",
    ),
]

UNRELATED = [
    "ModuleNotFoundError: No module named 'yaml'",
    "KeyError: 'state_dict'",
    "FileNotFoundError: [Errno 2] No such file or directory: 'weights.pth'",
    'RuntimeError: Error(s) in loading state_dict for ResNet: Missing key(s) in state_dict: "fc.weight".',
    "IndexError: list index out of range",
    "AttributeError: 'NoneType' object has no attribute 'shape'",
    "TypeError: forward() missing 1 required positional argument: 'x'",
    "ValueError: could not convert string to float: 'abc'",
    "ZeroDivisionError: division by zero",
    "ConnectionError: HTTPSConnectionPool(host='example.org', port=443): Max retries exceeded with url: /model",
    "subprocess.CalledProcessError: Command '['make']' returned non-zero exit status 2.",
    "RuntimeError: mat1 and mat2 shapes cannot be multiplied (48x8 and 5x5)",
    "RuntimeError: Given groups=1, weight of size [64, 3, 7, 7], expected input[1, 4, 224, 224] to have 3 channels",
    "The model was exported to ONNX in 3.1 s; all outputs are equal and every test passed.",
    "AssertionError",
    "",
]


def first(text):
    found = explain(text)
    return found[0].name if found else None


@pytest.mark.parametrize(("text", "name"), REPORTED, ids=lambda value: value[:40])
def test_reported(text, name):
    assert first(text) == name


@pytest.mark.parametrize(("text", "name"), REWORDED, ids=lambda value: value[:40])
def test_reworded(text, name):
    assert first(text) == name


@pytest.mark.parametrize("text", UNRELATED, ids=lambda value: value[:40])
def test_unrelated(text):
    assert explain(text) == []
    assert hint(text) == ""


def test_operator_place_and_entries_are_named():
    text = (
        'Traceback (most recent call last):\n  File "/home/me/net/head.py", line 12, in forward\n    y = x % 2\n'
        '  File "/site-packages/torch/onnx/utils.py", line 3, in f\n'
        "Exporting the operator 'aten::remainder' to ONNX opset version 9 is not supported"
    )
    (found,) = explain(text)
    assert found.operator == "aten::remainder"
    assert found.place == "net/head.py:12"
    assert "remainder" in found.entries
    assert str(found).endswith("; at net/head.py:12.")


def test_an_announcement_comes_after_what_it_announces():
    text = REPORTED[5][0] + "\n## Exception summary\n" + REPORTED[2][0]
    assert [d.name for d in explain(text)][:2] == ["dynamo_function_missing", "dynamo_step_convert"]


def test_a_hint_is_added_once_and_hides_nothing():
    error = UnsupportedError(f"TorchScript exporter: {REPORTED[0][0]}")
    before = str(error)
    assert with_hint(error) is error
    assert str(error).startswith(before)
    assert "\n  diagnosis: the TorchScript exporter has no translation" in str(error)
    assert str(with_hint(error)).count("diagnosis:") == 1


def test_an_unknown_error_stays_as_it_is():
    assert str(with_hint(UnsupportedError("something else."))) == "something else."
