"""A plugin that cannot be imported."""

raise RuntimeError("needs a licence key")
