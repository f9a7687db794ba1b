"""Finds where a model's Python code takes decisions, and the source of these functions."""
