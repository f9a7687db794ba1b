"""The example inputs of a call, their dynamic axes, and other inputs like them."""
