"""Finds the obstacles to an export without exporting."""
