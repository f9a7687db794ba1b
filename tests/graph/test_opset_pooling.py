"""Lowering rules of pooling: the same numbers."""

CASES = [
    {
        "id": "AveragePool, dilations of 1",
        "opset": 20,
        "graph": """(float[1,2,7,7] x) => (float[1,2,4,4] y) {
            y = AveragePool<kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1], dilations = [1, 1]>(x)}""",
        "eps": 2,
    },
    *(
        {
            "id": f"{pool}, ceil_mode, last window of {kernel} by {stride} on the padding{more}",
            "opset": 22,
            "graph": f"""(float[1,1,7,8] x) => (float[1,1,{rows},5] y) {{
                y = {pool}<kernel_shape = [{kernel}, 2], strides = [{stride}, 2], pads = [1, 1, {end}, 1],
                    ceil_mode = 1 {more}>(x)}}""",
            "eps": 2,
        }
        for pool, more in (("MaxPool", ""), ("AveragePool", ""), ("AveragePool", ", count_include_pad = 1"))
        for kernel, stride, end, rows in ((2, 2, 1, 4), (3, 3, 2, 3), (3, 2, 2, 4))
    ),
    {
        "id": "LpPool, dilations of 1",
        "opset": 20,
        "graph": """(float[1,2,7,7] x) => (float[1,2,5,5] y) {
            y = LpPool<kernel_shape = [3, 3], dilations = [1, 1], ceil_mode = 0>(x)}""",
    },
    {
        "id": "MaxPool, ceil_mode, stride over the end",
        "opset": 22,
        "graph": """(float[1,1,6] x) => (float[1,1,3] y) {
            y = MaxPool<kernel_shape = [1], strides = [2], ceil_mode = 1>(x)}""",
    },
    {
        "id": "MaxPool, ceil_mode, all windows kept",
        "opset": 22,
        "graph": """(float[1,1,8] x) => (float[1,1,4] y) {
            y = MaxPool<kernel_shape = [3], strides = [2], ceil_mode = 1>(x)}""",
    },
    {
        "id": "AveragePool, ceil_mode, dynamic size",
        "opset": 22,
        "graph": """(float[1,1,N] x) => (float[1,1,M] y) {
            y = AveragePool<kernel_shape = [2], strides = [2], pads = [1, 1], ceil_mode = 1>(x)}""",
        "eps": 2,
    },
]


def test_same_numbers(oracle, case, opset):
    oracle.assert_same_numbers(oracle.parse(case["opset"], case["graph"]), opset, eps=case.get("eps", 0))
