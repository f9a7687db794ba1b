"""Surgery on a model and its graph: other inputs and outputs, parts, preprocessing and postprocessing."""
