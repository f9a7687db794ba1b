"""What a profile's conditions can ask of a node."""
