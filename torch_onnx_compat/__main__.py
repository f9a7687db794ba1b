"""Runs the command line: `python -m torch_onnx_compat`."""

from torch_onnx_compat.cli import main

main()
