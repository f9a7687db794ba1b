"""Sonos tract."""

from importlib import metadata

import tract


def version():
    """Version of the engine."""
    return metadata.version("tract")


def load(path, feeds, outputs, variant):
    """Returns a function from feeds to outputs."""
    model = tract.onnx().load(path)
    names = [model.input_name(index) for index in range(model.input_count())]
    runnable = model.into_model().into_runnable()
    return lambda feeds: [tensor.to_numpy() for tensor in runnable.run([feeds[name] for name in names])]
