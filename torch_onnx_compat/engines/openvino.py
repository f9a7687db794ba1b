"""Intel OpenVINO, CPU plugin, in float32."""

import openvino


def version():
    """Version of the engine."""
    return openvino.__version__.split("-")[0]


def load(path, feeds, outputs, variant):
    """Returns a function from feeds to outputs."""
    core = openvino.Core()
    settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
    compiled = core.compile_model(core.read_model(path), "CPU", settings)

    def run(feeds):
        result = compiled({name: array for name, array in feeds.items() if _has(compiled, name)})
        return [result[compiled.output(name)] for name in outputs]

    return run


def _has(compiled, name):
    return any(name in port.get_names() for port in compiled.inputs)
