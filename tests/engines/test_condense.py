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
    assert row.when == {"mode": "cubic", "rank": {"not": [4]}}


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


def test_where_values_decide_the_operator_is_wrong_at_every_shape():
    samples = [sample("small", "works", rank=4), sample("large", "wrong", rank=4), sample("other", "works", rank=2)]
    works, rows = condense(samples)
    assert works == frozenset()
    assert rows == (Row("Resize", "wrong", source="probe large: off by 1"),)


def test_where_values_decide_about_a_refusal_other_shapes_may_work():
    _, (row,) = condense(
        [sample("a", "works", rank=4), sample("b", "refused", rank=4), sample("c", "works", rank=2)],
    )
    assert row.when == {"rank": {"not": [2]}}


def test_numbers_that_were_not_tried_are_taken_to_fail():
    _, (row,) = condense(
        [
            *(sample(f"p{axis}", "works", axes=axis, mode="x") for axis in ("absent", 0)),
            *(sample(f"f{axis}", "wrong", axes=axis, mode="x") for axis in (1, 3, "rising")),
        ]
    )
    assert row.when == {"axes": {"not": [0, "absent"]}}
    assert row.condition == "axes!=0|absent"
    target = Target("engine", rows=(row,))
    assert [target.verdict("Resize", 18, {"axes": a}) for a in (0, 2, "mixed")] == ["works", "wrong", "wrong"]


def test_a_word_explains_better_than_a_number():
    _, (row,) = condense(
        [
            sample("a", "wrong", hidden_size=6, outputs="0"),
            sample("b", "works", hidden_size=5, outputs="1"),
        ]
    )
    assert row.when == {"outputs": "0"}


def test_a_fact_that_some_graph_does_not_tell_explains_nothing():
    """Targets take what is not told as met: a condition on it would refuse what passed without it."""
    samples = [sample("a", "wrong", axes="x", mode="m"), sample("b", "works", mode="n")]
    works, rows = condense(samples)
    target = Target("engine", rows=rows, works=works)
    assert [target.verdict("Resize", 18, s.facts) for s in samples] == ["wrong", "works"]


def test_what_is_right_by_luck_does_not_narrow_the_condition():
    def tried(verdict, number, **facts):
        reason = "its numbers differ from run to run" if verdict == "wrong" else ""
        return Sample(f"{verdict}{number}", "Resize", facts, verdict, reason)

    samples = [tried("wrong", n, mode="linear", rows="one", at=f"{n}") for n in range(5)]
    samples += [tried("works", n, mode="linear", rows="one", at=f"{n + 5}") for n in range(2)]
    samples += [tried("works", n + 10, mode="nearest", rows="one", at=f"{n}") for n in range(6)]
    samples += [tried("works", n + 20, mode="linear", rows="more", at=f"{n}") for n in range(6)]
    _, (row,) = condense(samples)
    assert row.when == {"mode": "linear", "rows": "one"}


def test_places_that_were_not_tried_are_taken_to_fail():
    """An axis is no flag: where two of them fail, the third is not right."""
    works = [sample(f"p{axes}", "works", axes=axes) for axes in ("absent", "rising")]
    _, (row,) = condense([*works, *(sample(f"f{axes}", "wrong", axes=axes) for axes in (-1, 1))])
    assert row.when == {"axes": {"not": ["absent", "rising"]}}
    _, (row,) = condense([*works, sample("f", "wrong", axes="computed")])
    assert row.when == {"axes": "computed"}
