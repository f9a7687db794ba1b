"""Lowering rules of indexing, sampling, Fourier transforms and Einsum, and ONNX's own definitions."""

import numpy as np

EQUATIONS = [
    ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
    ("bhid,bhjd->bhij", (2, 3, 4, 5), (2, 3, 6, 5)),
    ("ij,kj->ki", (3, 4), (5, 4)),
    ("abc,cd->abd", (2, 3, 4), (4, 5)),
    ("abcd,cde->bae", (2, 3, 4, 5), (4, 5, 6)),
    ("i,j->ij", (3,), (4,)),
    ("i,i", (3,), (3,)),
    ("ij,ij->", (3, 4), (3, 4)),
    ("ij,ij->ij", (3, 4), (3, 4)),
    ("ijk,k->j", (2, 3, 4), (4,)),
    ("ij->ji", (3, 4)),
    ("ij->j", (3, 4)),
    ("ij,jk,kl->il", (3, 4), (4, 5), (5, 2)),
    ("bn,bn,bn->b", (2, 3), (2, 3), (2, 3)),
]


def einsum(equation, *shapes):
    terms, _, result = equation.partition("->")
    sizes = dict(zip(terms.replace(",", ""), [size for shape in shapes for size in shape], strict=True))
    inputs = ", ".join(f"float[{','.join(map(str, shape))}] x{i}" for i, shape in enumerate(shapes))
    output = f"float[{','.join(str(sizes[c]) for c in result)}] y" if result else "float y"
    names = ", ".join(f"x{i}" for i in range(len(shapes)))
    return f'({inputs}) => ({output}) {{y = Einsum<equation = "{equation}">({names})}}'


CASES = [
    *(
        {
            "id": f"{op_type} of equal values, the last one, axis {axis}, keepdims {keepdims}",
            "opset": 13,
            "graph": f"(float[3,4,5] x) => (int64[{sizes}] y) {{r = Round(x)  "
            f"y = {op_type}<axis = {axis}, keepdims = {keepdims}, select_last_index = 1>(r)}}",
        }
        for op_type in ("ArgMax", "ArgMin")
        for axis, keepdims, sizes in ((1, 1, "3,1,5"), (-1, 0, "3,4"))
    ),
    {
        "id": "DFT, axis given",
        "opset": 20,
        "graph": "(float[2,6,3,1] x) => (float[2,6,3,2] y) <int64 axis = {1}> {y = DFT(x, , axis)}",
        "eps": 4,
        "lowest": 17,
    },
    {
        "id": "DFT, default axis",
        "opset": 20,
        "graph": "(float[2,6,4,1] x) => (float[2,6,3,2] y) {y = DFT<onesided = 1>(x)}",
        "eps": 4,
        "lowest": 17,
    },
    *(
        {
            "id": f"GridSample, {mode}",
            "opset": 20,
            "graph": f"""(float[2,3,5,4] x, float[2,6,7,2] g) => (float[2,3,6,7] y) {{
                y = GridSample<mode = "{mode}", padding_mode = "border">(x, g)}}""",
            "lowest": 16,
        }
        for mode in ("linear", "nearest", "cubic")
    ),
    {
        "id": "ScatterND, reduction none",
        "opset": 18,
        "graph": """(float[4,2] x, int64[2,1] i, float[2,2] u) => (float[4,2] y) {
            y = ScatterND<reduction = "none">(x, i, u)}""",
        "feeds": {"i": np.array([[1], [3]])},
    },
    {
        "id": "ScatterElements, reduction add",
        "opset": 18,
        "graph": """(float[4,2] x, int64[2,2] i, float[2,2] u) => (float[4,2] y) {
            y = ScatterElements<reduction = "add">(x, i, u)}""",
        "feeds": {"i": np.array([[1, 1], [1, 0]])},
        "lowest": 16,
    },
    {
        "id": "RoiAlign, not shifted",
        "opset": 20,
        "graph": """(float[1,2,9,9] x, float[2,4] r, int64[2] b) => (float[2,2,3,3] y) {
            y = RoiAlign<coordinate_transformation_mode = "output_half_pixel", output_height = 3, output_width = 3,
                sampling_ratio = 2>(x, r, b)}""",
        "feeds": {"r": np.array([[1, 1, 6, 7], [0, 2, 0.5, 2.1]], np.float32), "b": np.array([0, 0])},
    },
    *(
        {
            "id": f"Trilu, upper = {upper}, k = {k}",
            "opset": 20,
            "graph": f"""(float[2,N,3] x) => (float[2,N,3] y) <int64 k = {{{k}}}> {{
                y = Trilu<upper = {upper}>(x, k)}}""",
        }
        for upper in (0, 1)
        for k in (-1, 0, 2)
    ),
    {"id": "Trilu, bool, no k", "opset": 20, "graph": "(bool[3,N] x) => (bool[3,N] y) {y = Trilu(x)}"},
    {
        "id": "Trilu, k given at run time",
        "opset": 20,
        "graph": "(int64[3,N] x, int64 k) => (int64[3,N] y) {y = Trilu(x, k)}",
        "feeds": {"k": np.array(1)},
    },
    *(
        {
            "id": f"Einsum, {equation}",
            "opset": 20,
            "graph": einsum(equation, *shapes),
            "eps": 16,
        }
        for equation, *shapes in EQUATIONS
    ),
    {
        "id": "ONNX's definition of RotaryEmbedding",
        "opset": 23,
        "graph": """(float[2,3,5,8] x, float[2,5,4] c, float[2,5,4] s) => (float[2,3,5,8] y) {
            y = RotaryEmbedding(x, c, s)}""",
        "eps": 4,
    },
    {
        "id": "ONNX's definition of CenterCropPad",
        "opset": 20,
        "graph": """(float[5,N] x) => (float[3,8] y) <int64[2] size = {3, 8}> {y = CenterCropPad(x, size)}""",
    },
]


def test_same_numbers(oracle, case, opset):
    proto = oracle.parse(case["opset"], case["graph"])
    oracle.assert_same_numbers(proto, opset, eps=case.get("eps", 0), feeds=case.get("feeds", {}))
