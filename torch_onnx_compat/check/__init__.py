"""Proves a file: against the target's profile, and against the original model in onnxruntime."""
