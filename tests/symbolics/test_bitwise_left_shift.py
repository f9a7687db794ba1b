from suites.byte_shifts import ByteShiftTests


class TestLeft(ByteShiftTests):
    name = "bitwise_left_shift"
