"""Messages of the command line name its options, not the keywords of Python."""

from types import SimpleNamespace

import pytest

from torch_onnx_compat.cli.spelling import as_options, learn_options


@pytest.fixture(autouse=True)
def options():
    names = (
        ("allow_baked", "dynamic"),
        ("allow_custom_domains", "exporter", "opset", "postprocess", "static", "outputs"),
    )
    params = [(name, True) for name in names[0]] + [(name, False) for name in names[1]]
    learn_options(SimpleNamespace(name=n, opts=[f"--{n.replace('_', '-')}"], multiple=many) for n, many in params)
    yield
    learn_options([])


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("accept it with allow_baked=['net.py:3'].", "accept it with --allow-baked net.py:3."),
        ("allow_baked=['a b:3', 'c']", "--allow-baked 'a b:3' --allow-baked c"),
        ("outputs=['layer3', '']", "--outputs layer3,"),
        ("freeze it: exporter='dynamo' with allow_baked", "freeze it: --exporter dynamo with --allow-baked"),
        ("opset_version=5: too low", "--opset 5: too low"),
        ("pass opset_version.", "pass --opset."),
        ("allow_custom_domains=True", "--allow-custom-domains"),
        ("dynamic={'x': {0: 'n', 2: 'h'}}.", "--dynamic x:0=n,2=h."),
        ("static={'batch': 1}", "--static batch=1"),
        ("postprocess=Detections('nms', boxes=..., scores=1)", "--postprocess 'form=nms boxes=... scores=1'"),
        ("control_flow=False, rewrites=[gelu], x.dynamic=True", "control_flow=False, rewrites=[gelu], x.dynamic=True"),
        ("'allow_baked' and my_allow_baked=3", "'allow_baked' and my_allow_baked=3"),
        ("dynamic=whatever", "dynamic=whatever"),
    ],
)
def test_keywords_become_options(text, wanted):
    assert as_options(text) == wanted


def test_a_command_without_such_options_leaves_the_text():
    learn_options([])
    assert as_options("allow_baked=['net.py:3']") == "allow_baked=['net.py:3']"
