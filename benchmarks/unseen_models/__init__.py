"""Models of packages that nobody had in mind when export_compat was made, in small configurations.

A model is made with random weights, and says how to draw its arguments. `n` is the batch; of every other dynamic size
the first value is the example's, the others are for the judge. Packages are imported by the function that uses them.
"""

from unseen_models import (  # they add to MODELS
    architectures,
    attention,
    dynamics,
    equivariant,
    forecasting,
    graph_networks,
    language,
    measures,
    medicine,
    more_sequences,
    pictures,
    pictures_classic,
    pictures_cv,
    restoration,
    science,
    sequences,
    signals,
    sound,
    speech,
    super_resolution,
    tabular,
    text_recognition,
    vision_transformers,
)
from unseen_models.table import MODELS, Unseen

__all__ = [
    "MODELS",
    "Unseen",
    "architectures",
    "attention",
    "dynamics",
    "equivariant",
    "forecasting",
    "graph_networks",
    "language",
    "measures",
    "medicine",
    "more_sequences",
    "pictures",
    "pictures_classic",
    "pictures_cv",
    "restoration",
    "science",
    "sequences",
    "signals",
    "sound",
    "speech",
    "super_resolution",
    "tabular",
    "text_recognition",
    "vision_transformers",
]
