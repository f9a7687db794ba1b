"""Files in float16 and bfloat16 from a float32 graph: what stays in float32 is found by measurement, and told.

measure -> plan -> convert -> judge, see `narrow.narrow_network`; docs/precision.md has the meaning of the figures.
"""
