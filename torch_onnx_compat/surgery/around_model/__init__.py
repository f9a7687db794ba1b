"""Surgery around the call of a twin: other inputs and outputs, parts of the model, state."""
