"""Torch functions that several families of entries share: mathematics and custom operators."""
