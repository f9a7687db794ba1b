"""A graph folded and cleaned, of the sizes that never vary among others."""
