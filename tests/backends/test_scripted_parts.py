"""Models that are scripted or traced, or have such a part, with dynamic axes."""

import onnxruntime
import pytest
import torch
from torch import nn

from torch_onnx_compat import CompatError, export_compat

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:FutureWarning", "ignore:.*torch.jit:DeprecationWarning")


class Sized(nn.Module):
    """What a trace computes of sizes, it computes with tensors, which dispatch modes are given as numbers."""

    def forward(self, x):
        return (x * x.shape[0]).reshape(x.shape[0] * 2, 2).cumsum(0) + x.shape[0] // 2


class Around(nn.Module):
    def __init__(self, part):
        super().__init__()
        self.part = part

    def forward(self, x):
        return self.part(x) * (2 if x.shape[0] > 4 else 1)


MODELS = {
    "the model": lambda: torch.jit.script(Sized().eval()),
    "the module 'part'": lambda: Around(torch.jit.trace(Sized().eval(), torch.randn(5, 4), check_trace=False)),
}


@pytest.mark.parametrize("name", MODELS)
def test_sizes_in_a_scripted_graph(name):
    model = MODELS[name]().eval()
    result = export_compat(model, torch.randn(3, 4), dynamic="batch", exporter="torchscript")
    session = onnxruntime.InferenceSession(result.model_bytes)
    for batch in (1, 3, 5, 9):
        x = torch.randn(batch, 4)
        (found,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
        torch.testing.assert_close(torch.from_numpy(found), model(x))


@pytest.mark.parametrize("name", MODELS)
def test_the_other_exporter_says_that_it_is_scripted(name):
    with pytest.raises(CompatError, match=f"{name} is scripted or traced.*exporter='torchscript' writes") as error:
        export_compat(MODELS[name]().eval(), torch.randn(3, 4), dynamic="batch", exporter="dynamo")
    assert "x.shape" not in str(error.value)
