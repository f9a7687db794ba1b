"""Proves a file: checks it against the target's profile, and compares it with the original model in onnxruntime."""
