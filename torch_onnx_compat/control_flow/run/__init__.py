"""What rewritten functions call while a model is exported."""
