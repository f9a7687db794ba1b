"""Converts a model to another opset: rules for single operators, then a check against the schemas."""
