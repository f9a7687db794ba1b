"""A model taken to another opset: rules for each operator, and the net under them."""
