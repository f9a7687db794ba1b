"""What a model asks of the sizes of its dynamic axes, and at which sizes the answers are others."""
