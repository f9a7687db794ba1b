from suites.byte_shifts import ByteShiftTests


class TestRight(ByteShiftTests):
    name = "bitwise_right_shift"
