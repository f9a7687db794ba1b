"""What is done on the finished graph: cut off, folded in, split, outlined."""
