"""Slims a graph by what is known of its sizes: shape arithmetic that is fixed, or the same, or not needed, goes."""
