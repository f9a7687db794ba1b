"""Adapts a graph to a target: alternatives of operators, and fewer axes for tensors of many."""
