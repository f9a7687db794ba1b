"""Conditions are found that tell failures from successes."""

from torch_onnx_compat.engines.condense import condense
from torch_onnx_compat.engines.measure import Sample
from torch_onnx_compat.targets import Row, Target


def sample(name, verdict, op_type="Resize", **facts):
    return Sample(name, op_type, facts, verdict, "off by 1")


def test_what_always_works():
    works, rows = condense([sample("a", "works", mode="cubic"), sample("b", "works", mode="linear")])
    assert works == {"Resize"}
    assert rows == ()


def test_what_never_works_takes_the_worst_verdict():
    _, rows = condense([sample("a", "refused", mode="cubic"), sample("b", "wrong", mode="linear")])
    assert rows == (Row("Resize", "wrong", source="probe b and 1 more: off by 1"),)


def test_one_fact():
    _, (row,) = condense(
        [
            sample("a", "wrong", mode="cubic", rank=4),
            sample("b", "wrong", mode="bicubic", rank=4),
            sample("c", "works", mode="linear", rank=4),
        ]
    )
    assert (row.verdict, row.when) == ("wrong", {"mode": ["bicubic", "cubic"]})


def test_two_facts():
    _, (row,) = condense(
        [
            sample("a", "wrong", mode="cubic", rank=5),
            sample("b", "works", mode="cubic", rank=4),
            sample("c", "works", mode="linear", rank=5),
        ]
    )
    assert row.when == {"mode": "cubic", "rank": 5}


def test_numbers_that_only_some_values_spoil_are_refused_at_every_shape():
    samples = [
        sample("a", "wrong", rank=4, mode="x"),
        sample("b", "works", rank=4, mode="x"),
        sample("c", "works", rank=3, mode="y"),
    ]
    works, rows = condense(samples)
    target = Target("engine", rows=rows, works=works)
    assert target.verdict("Resize", 18, {"rank": 4, "mode": "x"}) == "wrong"
    assert target.verdict("Resize", 18, {"rank": 3, "mode": "y"}) == "works"


def test_no_failure_is_called_right():
    samples = [
        sample(f"{m}{r}{t}", "wrong" if (m, r) == ("cubic", 5) or t == "int8" else "works", mode=m, rank=r, type=t)
        for m in ("cubic", "linear")
        for r in (3, 4, 5)
        for t in ("float", "int8")
    ]
    works, rows = condense(samples)
    target = Target("engine", rows=rows, works=works)
    assert [target.verdict("Resize", 18, s.facts) for s in samples] == [s.verdict for s in samples]
