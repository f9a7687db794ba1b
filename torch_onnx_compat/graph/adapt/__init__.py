"""A graph written so that a target runs it: other forms of operators, tensors of fewer axes."""
