"""Microsoft ONNX Runtime, CPU execution provider."""

import onnxruntime


def version():
    """Version of the engine."""
    return onnxruntime.__version__


def load(path, feeds, outputs, variant):
    """Returns a function from feeds to outputs."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda feeds: session.run(outputs, feeds)
