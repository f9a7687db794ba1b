"""A checked draft goes to its place in one step, or not at all."""
