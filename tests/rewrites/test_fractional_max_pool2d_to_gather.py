from suites.fractional_pools import FractionalPoolTests


class TestValues(FractionalPoolTests):
    name = "fractional_max_pool2d_to_gather"
    indices = False
