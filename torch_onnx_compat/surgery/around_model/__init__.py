"""What is done around the call of a twin: other inputs and outputs, parts, state."""
