"""Functions whose source is found by more than their first line: lambdas, hooks, functions inside rewritten ones."""

import runpy

import pytest
import torch
from torch import nn

from torch_onnx_compat import CompatError, export_compat
from torch_onnx_compat.control_flow.find.source import Unrewritable, definition

INPUTS = [torch.randn(3, 4, generator=torch.Generator().manual_seed(0)) * scale for scale in (1, 1e-3, 1000, -1000)]


class Hook(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Identity()
        self.layer.register_forward_hook(lambda m, a, o: o * 2 if o.max() > 100 else o)
        self.layer.register_forward_pre_hook(lambda m, a: (a[0] * 3,) if a[0].sum() < -100 else a)

    def forward(self, x):
        return self.layer(x)


class TwoOnALine(nn.Module):
    def __init__(self, k=3.0):
        super().__init__()
        self.f, self.g = lambda x: x * k if x.max() > 100 else x, lambda x, *, n=1: x + n if x.min() < -100 else x

    def forward(self, x):
        return self.g(self.f(x))


class OneLine(nn.Module):
    def forward(self, x): return (lambda t: t * 2 if t.max() > 100 else t)(x)  # fmt: skip


class Inner(nn.Module):
    def forward(self, x):
        if x.max() > 100:
            y = x * 2
            if y.sum() > 5:
                y = y + 1
                if y.min() < -1000:
                    y = y * 3
        else:
            y = x
            if y.min() < -100:
                y = y / 2
        return y


@pytest.mark.parametrize("kind", [Hook, TwoOnALine, OneLine, Inner])
def test_decisions_are_rewritten(kind, exporter):
    session = export_compat(kind().eval(), (INPUTS[0],), exporter=exporter).session()
    for x in INPUTS:
        (found,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
        torch.testing.assert_close(torch.from_numpy(found), kind().eval()(x))


def test_code_without_a_def_is_named():
    code = next(c for c in (lambda x: any(v > 0 for v in x)).__code__.co_consts if hasattr(c, "co_code"))
    with pytest.raises(Unrewritable, match=r"the generator expression in line \d+ has no def of its own"):
        definition(code)


def test_code_without_a_file_is_named(tmp_path):
    names, text = {}, "def forward(x):\n    return x * 2 if x.max() > 100 else x"
    exec(compile(text, str(tmp_path / "gone.py"), "exec"), names)
    with pytest.raises(CompatError, match="its source is not at hand; define the model in a file"):
        export_compat(names["forward"], (INPUTS[0],), exporter="torchscript")


FILE = """
import sys
from torch_onnx_compat.control_flow.find.source import lexical_chain

def outer(x):
    def inner():
        return [frame.f_code.co_name for frame in lexical_chain(sys._getframe())]
    return inner()

chain = outer(1)

class Body:
    chain = (lambda: [frame.f_code.co_name for frame in lexical_chain(sys._getframe())])()
"""


def test_a_file_that_is_running_encloses_no_function(tmp_path):
    """A user's script may export while it is being imported; its code is no function that can be rewritten."""
    path = tmp_path / "script.py"
    path.write_text(FILE)
    names = runpy.run_path(str(path))
    assert names["chain"] == ["inner", "outer"]
    assert names["Body"].chain == ["<lambda>"]
