"""Folds constants, sizes that never vary among them, and removes redundant nodes."""
