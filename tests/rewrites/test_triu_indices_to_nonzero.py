import torch
from suites.triangles import TriangleTests


class TestTriuIndices(TriangleTests):
    name = "triu_indices_to_nonzero"
    indices = staticmethod(torch.triu_indices)
