"""match as a chain of ifs: the same branch, and the same names, for random patterns and values."""

import ast

from hypothesis import given, reject, settings
from hypothesis import strategies as st

from torch_onnx_compat.control_flow.lower.match_form import unfold_matches
from torch_onnx_compat.control_flow.run import runtime

LEAVES = st.sampled_from(["0", "1", "-2", "2.5", "True", "False", "None", "'s'", "int()", "float()", "str()", "_"])


def parts(patterns):
    """Patterns of sequences, of alternatives, and of classes around another pattern."""
    several = st.lists(patterns, max_size=3)
    return st.one_of(
        several.map(lambda inner: f"[{', '.join(inner)}]"),
        st.lists(LEAVES.filter(lambda leaf: leaf != "_"), min_size=2, max_size=3).map(" | ".join),
        patterns.map(lambda inner: f"int({inner})"),
    )


PATTERNS = st.recursive(LEAVES | st.just("NAME"), parts, max_leaves=5)
VALUES = st.recursive(
    st.sampled_from([0, 1, -2, 2.5, 7, True, False, None, "s", "ab", 2.0]),
    lambda inner: st.lists(inner, max_size=3) | st.lists(inner, max_size=3).map(tuple),
    max_leaves=5,
)


@st.composite
def programs(draw):
    lines = ["def f(value):", "    match value:"]
    for number in range(draw(st.integers(1, 4))):
        pattern, names = draw(PATTERNS), []
        while "NAME" in pattern:
            names.append(f"n{number}_{len(names)}")
            pattern = pattern.replace("NAME", names[-1], 1)
        guards = ["", f" if isinstance({names[0]}, int) and {names[0]} > 0" if names else " if value"]
        lines.append(f"        case {pattern}{draw(st.sampled_from(guards))}:")
        lines.append(f"            return {number}, [{', '.join(names)}]")
    return "\n".join([*lines, "    return None"])


def compiled(source):
    """The source's code; Python takes no case that hides those behind it."""
    try:
        return compile(source, "match.py", "exec")
    except SyntaxError:
        reject()


@settings(deadline=None, max_examples=300)
@given(programs(), st.lists(VALUES, min_size=4, max_size=8))
def test_a_chain_does_what_the_match_does(source, values):
    code = compiled(source)
    plain, chained = {}, {"_rt": runtime}
    exec(code, plain)
    tree = ast.parse(source)
    unfold_matches(tree.body[0])
    assert not any(isinstance(node, ast.Match) for node in ast.walk(tree))
    exec(compile(tree, "chain.py", "exec"), chained)
    for value in values:
        assert repr(chained["f"](value)) == repr(plain["f"](value)), (value, ast.unparse(tree))


def unfolded(source):
    tree = ast.parse(source)
    unfold_matches(tree.body[0])
    return ast.unparse(tree)


def test_patterns_without_a_form_stay():
    for pattern in ("{'a': 1}", "[1, *rest]", "Point(x=1)", "Point(1)", "0 | (1 as a)"):
        source = f"def f(v):\n    match v:\n        case {pattern}:\n            pass"
        assert unfolded(source) == ast.unparse(ast.parse(source))


def test_a_name_that_is_read_behind_a_guard_stays():
    source = "def f(v):\n    n = 0\n    match v:\n        case n if n > 9:\n            pass\n    return n"
    assert unfolded(source) == ast.unparse(ast.parse(source))


def test_a_case_that_binds_the_name_itself_is_no_obstacle():
    source = (
        "def f(v):\n    match v:\n        case n if n > 9:\n            pass\n        case n:\n            return n"
    )
    assert "match" not in unfolded(source)
