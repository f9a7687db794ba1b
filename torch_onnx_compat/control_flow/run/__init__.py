"""The run-time module: functions that rewritten code calls while a model is exported."""
