"""How torch's operators and functions are written, by family: in ONNX (`@symbolic`) or in torch (`@decomposition`).

A module holds one family with its mathematics. Where several entries replace one function, they are tried in the
order in which they stand in their module.
"""

FAMILIES = (
    "activation",
    "assignment",
    "attention",
    "bits",
    "complex_numbers",
    "convolution",
    "counting",
    "creation",
    "deformable_convolution",
    "diagonals",
    "distances",
    "elementary",
    "elimination",
    "embedding",
    "focus",
    "flexible_attention",
    "fourier",
    "grid_sampling",
    "indexing",
    "losses",
    "mod_and_division",
    "normalization",
    "patches",
    "predicates",
    "products",
    "quantization",
    "rearranging",
    "recurrent",
    "reductions",
    "regions",
    "resizing",
    "scattering",
    "short_time",
    "sorting",
    "special",
    "spectral",
)
"""The modules, in the order in which they are loaded."""

if __name__ == "symbolics":  # by its path in a checkout; each file would register its entries twice
    raise ImportError("import torch_onnx_compat.symbolics instead")
