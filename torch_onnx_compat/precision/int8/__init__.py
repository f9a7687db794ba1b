"""Files in eight bits from a float32 graph: what stays in float32 is found by measurement, and told.

calibrate -> choose ranges -> rank the layers -> search, see `quantize.quantize_network`; docs/precision.md has the
meaning of the figures.
"""
