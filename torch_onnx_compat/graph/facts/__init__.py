"""Facts: properties of a node that the conditions in a target's profile ask for."""
