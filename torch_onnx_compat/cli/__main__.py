"""Runs the command line: `python -m torch_onnx_compat.cli`."""

from torch_onnx_compat.cli import main

main()
