"""Models of packages that nobody had in mind when export_compat was made, in small configurations.

A model is made with random weights, and says how to draw its arguments. `n` is the batch; of every other dynamic size
the first value is the example's, the others are for the judge. Packages are imported by the function that uses them.
"""

from unseen_models import (  # they add to MODELS
    architectures,
    forecasting,
    graph_networks,
    medicine,
    more_sequences,
    pictures,
    pictures_classic,
    restoration,
    science,
    sequences,
    signals,
    sound,
    super_resolution,
    vision_transformers,
)
from unseen_models.table import MODELS, Unseen

__all__ = [
    "MODELS",
    "Unseen",
    "architectures",
    "forecasting",
    "graph_networks",
    "medicine",
    "more_sequences",
    "pictures",
    "pictures_classic",
    "restoration",
    "science",
    "sequences",
    "signals",
    "sound",
    "super_resolution",
    "vision_transformers",
]
