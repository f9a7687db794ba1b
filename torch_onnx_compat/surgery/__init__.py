"""Surgery at both ends of a model: other outputs, parts of it, and what the host does before and after it."""
