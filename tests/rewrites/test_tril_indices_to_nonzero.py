import torch
from suites.triangles import TriangleTests


class TestTrilIndices(TriangleTests):
    name = "tril_indices_to_nonzero"
    indices = staticmethod(torch.tril_indices)
