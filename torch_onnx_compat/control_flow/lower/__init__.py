"""Rewrites functions so that their decisions are calls of the run-time module."""
