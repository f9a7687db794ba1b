"""Torch functions that catalogue entries share: mathematics that several entries need, and custom operators."""
