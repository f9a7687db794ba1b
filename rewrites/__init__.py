"""What modules, functions and control flow are replaced by so that they export: one entry, one file."""
