"""Postprocessing: what follows the last layers that have weights, taken out of the file.

The user's guide is docs/surgery.md, which also says how non-maximum suppression is put behind a detector.
"""

from torch_onnx_compat.catalogue.registry import machinery


@machinery("torch_onnx_compat.surgery.on_graph.strip", source="docs/surgery.md")
def strip_postprocessing() -> None:
    """Takes the postprocessing out of the file into result.postprocess; the same as postprocess="strip"."""
