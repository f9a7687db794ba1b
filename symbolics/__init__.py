"""How torch operators are written in ONNX operators: one entry, one file."""
