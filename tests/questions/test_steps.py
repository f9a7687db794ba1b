"""Whether an answer matters: a condition on sizes too large to try is answered both ways, without values."""

import random

import pytest
import torch
from symbolic_runs import DYNAMIC, Module

from torch_onnx_compat import CompatError, export_compat
from torch_onnx_compat.observe import Observation
from torch_onnx_compat.prepare import export_conditions, prepare
from torch_onnx_compat.questions.run import SymbolicRuns

BRANCHES = (
    "x = x.contiguous()",
    "x = x.clone()",
    "x = x.to(x.dtype)",
    "x = x.reshape(x.shape)",
    "x = x * 1",
    "x = x * 2",
    "y = x.contiguous()",
    "y = x.clone()",
    "y = x[:, :9]",
    "flag = True",
    "flag = x.shape[2] > 40",
    "if x.shape[2] > 40: x = x - 1",
    "if x.sum() > 0: x = x - 1",
    "pass",
    "x = x.transpose(2, 3).contiguous().transpose(2, 3)",
    "x = x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)",
    "n = x.shape[2]",
)
REST = (
    "x = x + 1",
    "y.add_(1)",
    "x = x.relu_()",
    "x = x + y",
    "if flag: x = x * 3",
    "if flag and x.shape[2] % 2: x = x * 3",
    "x = x.flatten(1).view(x.shape)",
    "x = x[:, :n]",
    "x = x.transpose(2, 3)",
    "y = y[:, 0]; y.mul_(2)",
    "x = torch.cat([x, x])",
)


def written(seed):
    """A function with a condition on its size, which a global number decides."""
    draw = random.Random(seed)
    lines = ["y, flag, n = x, False, 2", *draw.choices(REST, k=draw.randint(0, 2))]
    lines += ["if x.numel() > LIMIT: " + draw.choice([b for b in BRANCHES if not b.startswith("if")])]
    if draw.random() < 0.3:
        lines[-1:] = ["if x.numel() > LIMIT:", "    " + draw.choice(BRANCHES)]
    lines += draw.choices(REST, k=draw.randint(1, 4))
    return "def model(x):\n    x = x + 0\n" + "\n".join("    " + line for line in lines) + "\n    return x, y\n"


def both_ways(source, x):
    """What a function returns where the condition fails, and where it holds."""
    scopes = [{"torch": torch, "LIMIT": limit} for limit in (2**40, 0)]
    for scope in scopes:
        exec(compile(source, "model.py", "exec"), scope)
    return [scope["model"](x.clone()) for scope in scopes]


def equal(one, other):
    return all(a.shape == b.shape and torch.equal(a, b) for a, b in zip(one, other, strict=True))


def is_no_matter(source, x):
    scope = {"torch": torch, "LIMIT": 2**40}
    exec(compile(source, "model.py", "exec"), scope)
    with export_conditions():
        observation = Observation(prepare(Module(scope["model"]).eval(), (x,), dynamic=DYNAMIC))
        runs = SymbolicRuns(observation)
        asked = [q for q in runs.at({}).questions if "1099511627776" in str(q.expression)]
        return all(runs.is_no_matter(question, runs.inputs_at({})) for question in asked)


def test_what_is_said_not_to_matter_changes_nothing():
    """Of a hundred programs, at the sizes of the run and at others at which the code goes the same way."""
    found = {True: 0, False: 0}
    for seed in range(100):
        source = written(seed)
        x = torch.randn(2, 3, 4, 6)
        try:
            same = equal(*both_ways(source, x))
            no_matter = is_no_matter(source, x)
        except RuntimeError:
            continue  # shapes do not fit
        found[no_matter] += 1
        if no_matter:
            assert same, source
            for shape in ((1, 3, 4, 6), (2, 3, 8, 5), (5, 3, 64, 2)):
                assert equal(*both_ways(source, torch.randn(shape))), (source, shape)
    assert found[True] >= 20
    assert found[False] >= 20


def upsampled(x):
    """As diffusers has it: torch's kernel errs on large outputs that are not contiguous."""
    if x.numel() * 2 > 2**31:
        x = x.contiguous()
    x = torch.nn.functional.interpolate(x, scale_factor=2.0, mode="nearest")
    if x.shape[2] % 4:
        x = torch.nn.functional.pad(x, (0, 0, 0, 2))
    if x.permute(0, 2, 3, 1).numel() > 2**31:
        x = x.contiguous()
    return x + 1


def doubled(x):
    return x * 2 if x.numel() * 2 > 2**31 else x


def remembered(x):
    flag = x.numel() * 2 > 2**31
    x = x + 1
    if x.shape[2] % 2:
        x = x.flip(3) if flag else x
    return x


def asks_more(x):
    if x.numel() * 2 > 2**31 and x.shape[2] > 1000:
        return x * 2
    return x


def test_a_copy_of_what_is_large_is_verified(exporter):
    x = torch.randn(1, 3, 6, 6)
    result = export_compat(upsampled, (x,), dynamic=DYNAMIC, exporter=exporter)
    session = result.session()
    for shape in ((1, 3, 6, 6), (2, 3, 7, 5), (3, 3, 1, 2), (1, 3, 9, 30)):
        x = torch.randn(shape)
        torch.testing.assert_close(torch.from_numpy(session.run(None, {"x": x.numpy()})[0]), upsampled(x))
    assert {axis.name: axis.proven for axis in result.axes}["batch"] or exporter == "dynamo"


@pytest.mark.parametrize("model", [doubled, remembered, asks_more])
def test_what_changes_the_result_is_not(model, exporter):
    with pytest.raises(CompatError, match=r"would freeze|too large to try|captured for sizes"):
        export_compat(model, (torch.randn(1, 3, 6, 6),), dynamic=DYNAMIC, exporter=exporter)
