"""Every use of torch's internals; tests/backends/test_internals.py fails if one of them moves."""

from torch_onnx_compat.backends.internals.dynamo import (
    allow_dynamic_composites,
    build_torchlib,
    cache_torchlib,
    overloads,
    record_node,
    rnn_decompositions,
    size_conditions,
    torchlib_function,
)
from torch_onnx_compat.backends.internals.higher_order import (
    call_cond,
    call_scan,
    call_while_loop,
    exports_scan,
    suppress_in_capture,
    without_function_modes,
)
from torch_onnx_compat.backends.internals.scripting import script_if, script_loop
from torch_onnx_compat.backends.internals.torchscript import (
    add_tensor_method,
    built_in_symbolic,
    function_of_graph,
    is_graph_value,
    max_torchscript_opset,
    optional_tensor_type,
    references_to,
    register_symbolics,
    symbolic_registry,
    trace,
    without_weights,
)

__all__ = [
    "add_tensor_method",
    "allow_dynamic_composites",
    "build_torchlib",
    "built_in_symbolic",
    "cache_torchlib",
    "call_cond",
    "call_scan",
    "call_while_loop",
    "exports_scan",
    "function_of_graph",
    "is_graph_value",
    "max_torchscript_opset",
    "optional_tensor_type",
    "overloads",
    "record_node",
    "references_to",
    "register_symbolics",
    "rnn_decompositions",
    "script_if",
    "script_loop",
    "size_conditions",
    "suppress_in_capture",
    "symbolic_registry",
    "torchlib_function",
    "trace",
    "without_function_modes",
    "without_weights",
]
