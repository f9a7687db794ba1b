"""Random functions compute after their rewriting what they computed before, in Python and in the file."""

import importlib.util
import string
import types
import warnings

import pytest
import torch

from control_flow.flows import make_flow
from torch_onnx_compat import CompatError, export_compat
from torch_onnx_compat.control_flow.find.source import Unrewritable, compile_definition, definition, forget_sources
from torch_onnx_compat.control_flow.lower.statements import lower

INPUTS = [
    torch.tensor(v) for v in ([0.3, -0.2, 0.1], [9.0, 2.0, 30.0], [-7.0, -3.0, -60.0], [0.0, 0.0, 0.0], [1.0, 1, 1])
]
INPUTS += [torch.randn(3, generator=torch.Generator().manual_seed(n)) * 10**n for n in range(3)]
PROGRAMS, EXPORTS = 400, 12

# What a branch writes and the rest only reads, and what is one variable for a nested function.
WRITTEN = {
    "attribute": """
        if x.max() > 20:
            self.calls = 2.0
        return x * self.calls
    """,
    "attribute_in_both_branches": """
        if x.max() > 20:
            self.last = x * 2
        else:
            self.last = x - 1
        return x * self.last
    """,
    "attribute_after_return": """
        if x.max() > 20:
            return x
        self.calls = 2.0
        return x * self.calls
    """,
    "attribute_in_a_decision_of_a_decision": """
        if x.sum() > 5:
            if x.max() > 20:
                self.calls = x.max()
            x = x + self.calls
        return x * self.calls
    """,
    "attribute_of_another_length": """
        if x.sum() > 5:
            self.last = x[:1]
        else:
            self.last = x
        return self.last.sum() + x
    """,
    "attribute_by_a_method": """
        def count():
            setattr(self, "calls", self.calls + 1)
        if x.sum() > 5:
            count()
        return x * self.calls
    """,
    "attribute_that_nobody_reads": """
        if x.sum() > 5:
            self.last = x
        return x * 2
    """,
    "buffer": """
        if x.sum() > 5:
            self.table = self.table * x
        return x + self.table
    """,
    "attribute_of_a_namespace": """
        if x.max() > 20:
            self.space.calls = 2.0
        return x * self.space.calls
    """,
    "attribute_after_an_exit": """
        for i in range(3):
            if x.sum() > i:
                break
            self.calls = self.calls + 1
        return x * self.calls
    """,
    "attribute_at_an_exit": """
        i = 0
        while i < 3 and x.sum() < 30:
            i += 1
            if x.max() > i:
                self.calls = x.max()
                break
            self.calls = self.calls + x.min()
        return x * self.calls
    """,
    "read_later": """
        if x.sum() > 50:
            x = x + 1
        elif x.max() < -5:
            return x * 3
        return x * 2
    """,
    "number": """
        scale = 1.0
        if x.abs().max() > 20:
            scale = 0.01
        elif x.abs().max() < 0.5:
            return torch.zeros_like(x)
        return x * scale
    """,
    "dict": """
        d = {"a": x, "b": 1}
        if x.sum() > 5:
            d["a"] = x + 1
        elif x.max() < 0:
            d["b"] = 7
            return d["a"] * d["b"]
        return d["a"] * 2 + d["b"]
    """,
    "bound_in_both": """
        if x.sum() > 5:
            y = x + 1
        else:
            if x.max() < 0:
                return x
            y = x * 2
        return y * 2
    """,
    "nested_if": """
        y = x
        if x.sum() > 5:
            if x.max() > 20:
                y = x + 1
            elif x.min() < -1:
                return y * 7
        elif x.sum() < -5:
            y = x - 1
        return y * 2
    """,
    "closure": """
        y = x
        def inner(t):
            return t + y
        if x.sum() > 5:
            y = x + 1
        elif x.max() < 0:
            return inner(x) * 3
        return inner(x) * 2
    """,
    "lambda": """
        y = x
        f = lambda t: t * y
        if x.max() > 20:
            return f(x)
        y = y + 1
        if x.sum() > 5:
            y = f(x)
        return f(x) + y
    """,
    "nonlocal": """
        n = 0
        def count(t):
            nonlocal n
            if t.sum() > 5:
                n = n + 2
            return t
        y = count(x)
        return y + n
    """,
    "container_in_loop": """
        acc = {"n": 0}
        for i in range(3):
            if x[i] > 3:
                acc["n"] = -1
                break
            acc["n"] += 1
        return x + acc["n"]
    """,
    "write_in_loop": """
        acc = torch.zeros(3)
        for i in range(3):
            if x[i] > 3:
                break
            acc[i] = x[i] * 2
            acc.add_(1)
        return acc + x
    """,
}
REFUSED = {
    "caught": (
        """
        try:
            if not (x < 20).all():
                raise ValueError
            return x / 2
        except ValueError:
            return torch.zeros_like(x)
        """,
        "caught",
    ),
    "caught_assert": (
        """
        try:
            assert x.max() < 20
            y = x / 2
        except AssertionError:
            y = torch.zeros_like(x)
        return y
        """,
        "caught",
    ),
    "alias": (
        """
        d = {"a": x}
        e = d
        if x.max() > 20:
            d["a"] = x * 2
        return e["a"] + 1
        """,
        "d is changed, which is e too",
    ),
    "attribute": (
        """
        if x.max() > 20:
            self.kept["a"] = x
        return x * self.kept["a"]
        """,
        r"self.kept\['a'\] is changed",
    ),
    "container_in_a_container": (
        """
        kept = {"all": [{}]}
        if x.max() > 20:
            kept["all"][0]["a"] = x
        return x * 2
        """,
        r"kept\['all'\]\[0\]\['a'\] is changed",
    ),
    "attribute_of_another_object": (
        """
        if x.max() > 20:
            self.holder.calls = 2.0
        return x * self.holder.calls
        """,
        "writes the attribute self.holder.calls",
    ),
    "attribute_of_another_kind": (
        """
        if x.max() > 20:
            self.last = x
        return x if self.last is None else x + self.last
        """,
        "the attribute last is read, which a decision or a loop that depends on the inputs has written",
    ),
    "attribute_of_a_round": (
        """
        def step(row):
            self.calls = row
            return row * 2
        total = x[:0].sum()
        for row in x[x > 0]:
            total = total + step(row)
        return total * self.calls
        """,
        "the attribute calls is read, which a decision or a loop that depends on the inputs has written",
    ),
    "container_after_an_exit": (
        """
        for i in range(3):
            if x.sum() > i:
                break
            self.kept["a"] = float(i)
        return x * self.kept["a"]
        """,
        r"self.kept\['a'\] is changed in a round after it",
    ),
    "nonlocal": (
        """
        n = 0
        def add(k):
            nonlocal n
            n = n + k
        if x.sum() > 5:
            add(2)
        return x + n
        """,
        "add binds n of an outer scope",
    ),
}


def load(source, folder, name):
    path = folder / f"{name}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    model = module.Flow().eval()
    model.kept, model.calls, model.last, model.holder = {"a": 1.0}, 1.0, None, string.Formatter()
    model.holder.calls, model.space = 1.0, types.SimpleNamespace(calls=1.0)
    model.register_buffer("table", torch.ones(3))
    return model


def outcome(model, x):
    try:
        return model(x.clone())
    except ValueError:
        return "ValueError"


def same(a, b):
    return (
        a == b
        if isinstance(a, str) or isinstance(b, str)
        else torch.allclose(a, b, rtol=1e-4, atol=1e-4, equal_nan=True)
    )


def difference_in_python(source, folder, name):
    """The first input at which a flow computes something else once it is rewritten; None if there is none."""
    model = load(source, folder, name)
    wanted = [outcome(model, x) for x in INPUTS]
    code = type(model).forward.__code__
    forget_sources()
    found = definition(code)
    node = lower(found.node, range(len(source.splitlines()) + 1))
    type(model).forward.__code__ = compile_definition(node, found.owner, code)
    return next((x for x, result in zip(INPUTS, wanted, strict=True) if not same(outcome(model, x), result)), None)


@pytest.mark.parametrize("start", range(0, PROGRAMS, 50))
def test_rewritten_function_is_the_same_in_python(start, tmp_path):
    rewritten = 0
    for seed in range(start, start + 50):
        source = make_flow(seed)
        try:
            other = difference_in_python(source, tmp_path, f"flow_{seed}")
        except Unrewritable:
            continue
        rewritten += 1
        assert other is None, f"seed {seed} at {other}\n{source}"
    assert rewritten >= 25


def check_file(source, folder, name, exporter):
    """Whether a flow was exported; its file is compared wherever the model does not raise."""
    model = load(source, folder, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            session = export_compat(model, (INPUTS[0].clone(),), exporter=exporter).session()
        except CompatError:
            return False
    for x in INPUTS:
        with torch.no_grad():
            wanted = outcome(load(source, folder, name), x)
        if isinstance(wanted, torch.Tensor):
            (found,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
            assert same(torch.from_numpy(found), wanted), f"{name} at {x}: {found} for {wanted}\n{source}"
    return True


def is_short(source):
    """Whether both exporters are done in a few seconds: every decision doubles the paths."""
    return source.count("if ") <= 5 and "while" not in source and source.count("for ") <= 1


@pytest.mark.one_exporter
def test_file_computes_what_the_function_computes(exporter, tmp_path):
    sources = [source for source in map(make_flow, range(PROGRAMS)) if is_short(source)][:EXPORTS]
    exported = [check_file(source, tmp_path, f"flow_{number}", exporter) for number, source in enumerate(sources)]
    assert sum(exported) >= EXPORTS // 4


@pytest.mark.one_exporter
@pytest.mark.parametrize("name", WRITTEN)
def test_what_a_branch_writes_is_read_later(name, exporter, tmp_path):
    assert check_file(source_of(WRITTEN[name]), tmp_path, name, exporter), "refused"


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_mask_can_undo_is_refused(name, exporter, tmp_path):
    body, message = REFUSED[name]
    with pytest.raises(CompatError, match=message):
        export_compat(load(source_of(body), tmp_path, name), (INPUTS[0],), exporter=exporter)


def source_of(body):
    return "import torch\nfrom torch import nn\n\n\nclass Flow(nn.Module):\n    def forward(self, x):" + body
