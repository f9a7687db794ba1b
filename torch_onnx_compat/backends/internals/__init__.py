"""Every use of torch's internals, each guarded; tests/backends/test_internals.py fails when one moves."""

from torch_onnx_compat.backends.internals.dynamo import (
    build_torchlib,
    cached_torchlib,
    composites_of_dynamic_sizes,
    overloads,
    record_node,
    rnn_decompositions,
    size_conditions,
    torchlib_function,
)
from torch_onnx_compat.backends.internals.higher_order import (
    chosen,
    exports_scan,
    scanned,
    unwinding,
    while_looped,
    without_function_modes,
)
from torch_onnx_compat.backends.internals.scripting import scripted_if, scripted_loop
from torch_onnx_compat.backends.internals.torchscript import (
    built_in_symbolic,
    function_of_graph,
    is_graph_value,
    max_torchscript_opset,
    method_of_tensors,
    optional_tensor_type,
    references_to,
    registered_symbolics,
    symbolic_registry,
    trace,
    without_weights,
)

__all__ = [
    "build_torchlib",
    "built_in_symbolic",
    "cached_torchlib",
    "chosen",
    "composites_of_dynamic_sizes",
    "exports_scan",
    "function_of_graph",
    "is_graph_value",
    "max_torchscript_opset",
    "method_of_tensors",
    "optional_tensor_type",
    "overloads",
    "record_node",
    "references_to",
    "registered_symbolics",
    "rnn_decompositions",
    "scanned",
    "scripted_if",
    "scripted_loop",
    "size_conditions",
    "symbolic_registry",
    "torchlib_function",
    "trace",
    "unwinding",
    "while_looped",
    "without_function_modes",
    "without_weights",
]
