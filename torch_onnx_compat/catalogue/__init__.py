"""Entries, the decorators that declare them, and the registry that holds them."""
