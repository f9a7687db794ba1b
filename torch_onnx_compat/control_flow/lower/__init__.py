"""Functions written anew, so that their decisions are calls of the run-time module."""
