"""Where a model's Python takes decisions, and the source of the functions that take them."""
