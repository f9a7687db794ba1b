"""Runs the command line: `python -m torch_onnx_compat`."""

from torch_onnx_compat.cli import main

if __name__ == "__main__":
    main()
