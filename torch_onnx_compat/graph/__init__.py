"""What is done to the exported graph: cleaning it, and taking it to another opset."""
