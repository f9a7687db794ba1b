"""Passes over the exported graph: tidying, conversion to another opset, adaptation to a target."""
