from suites.fractional_pools import FractionalPoolTests


class TestIndices(FractionalPoolTests):
    name = "fractional_max_pool2d_indices"
    indices = True
