"""Surgery at both boundary of a model: other outputs, parts of it, and what the host does before and after it."""
