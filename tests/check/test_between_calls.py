"""A model that computes something else in its second call is told so: its file is right at the first one only."""

import itertools

import onnxruntime
import pytest
import torch
from torch import nn

from torch_onnx_compat import export_compat
from torch_onnx_compat.doctor.doctor import doctor
from torch_onnx_compat.observe import Observation

X = torch.linspace(-1, 2, 8).reshape(2, 4)
SEEN: dict[str, torch.Tensor] = {}


class Memory:
    last = None


class Model(nn.Module):
    def __init__(self, step, **attributes):
        super().__init__()
        self.line = nn.Linear(4, 4)
        for name, value in attributes.items():
            if type(value) is torch.Tensor:
                self.register_buffer(name, value)
            else:
                setattr(self, name, value)
        self.step = step

    def forward(self, x):
        return self.step(self, self.line(x))


def last(self, x):
    x = torch.tanh(x + self.h)
    self.h = x
    return x * 2


def added(self, x):
    self.h.add_(x)
    return self.h * 2


def through_data(self, x):
    y = x + self.h
    self.h.data.copy_(x)
    return y


def averaged(self, x):
    """The mean of equal values is one of them: a second call on the same inputs shows nothing."""
    self.h.append(x)
    return torch.stack(self.h).mean(0)


def in_object(self, x):
    y = x if self.h.last is None else x - self.h.last
    self.h.last = x
    return y


def counted(self, x):
    self.n += 1
    return x * self.n


def numbered(self, x):
    return x * next(self.n)


class OfClass(Model):
    h = None

    def forward(self, x):
        before, OfClass.h = OfClass.h, x
        return x if before is None else x - before


def in_global(self, x):
    before = SEEN.get("x")
    SEEN["x"] = x
    return x if before is None else x - before


def refused(self, x):
    if self.n:
        raise ValueError("once only")
    self.n = 1
    return x


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Model(last, h=torch.zeros(2, 4))

    def forward(self, x):
        return self.part(x) + 1


class Scripted(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("h", torch.zeros(2, 4))

    def forward(self, x):
        self.h = self.h + x
        return self.h * 2


def replaced(self, x):
    y = self.act(x)
    self.act = nn.Tanh()
    return y


def bound_anew(self, x):
    y = x * self.factor
    self.factor = nn.Parameter(self.factor * 2)
    return y


def by_batch(self, x):
    """Keeps a value for batches of equal remainders: the case of the next batch shows nothing."""
    key = x.shape[0] % 3
    if key not in self.h:
        self.h[key] = x.amax().detach()
    return x / (1 + self.h[key].abs())


def longest(self, x):
    if x.shape[0] > self.n:
        self.n = x.shape[0]
    return x * self.n


KEEPING = {
    "a scripted module": (lambda: torch.jit.script(Scripted()), "changes h,"),
    "a buffer": (lambda: Model(last, h=torch.zeros(2, 4)), "state=['h']"),
    "a buffer in place": (lambda: Model(added, h=torch.zeros(2, 4)), "state=['h']"),
    "the data of a buffer": (lambda: Model(through_data, h=torch.zeros(2, 4)), "state=['h']"),
    "a list": (lambda: Model(averaged, h=[]), "state=['h']"),
    "an object": (lambda: Model(in_object, h=Memory()), "state=['h']"),
    "a module inside": (Inner, "state=['part.h']"),
    "a number": (lambda: Model(counted, n=0), "changes n,"),
    "an iterator": (lambda: Model(numbered, n=itertools.count(1)), "changes n,"),
    "a class": (lambda: OfClass(None), "changes h,"),
    "a global": (lambda: Model(in_global), "SEEN"),
    "a module that is replaced": (lambda: Model(replaced, act=nn.Identity()), "changes act,"),
    "a parameter that is bound anew": (
        lambda: Model(bound_anew, factor=nn.Parameter(torch.ones(4))),
        "changes factor,",
    ),
    "an error": (lambda: Model(refused, n=0), "refuses (ValueError: once only"),
}


def notes_of(model, exporter="torchscript", **options):
    result = export_compat(model.eval(), X, exporter=exporter, **options)
    return [note for note in result.notes if "The file starts anew at each run" in note], result


@pytest.mark.filterwarnings("ignore:.*torch.jit.script")
@pytest.mark.parametrize("kind", KEEPING)
def test_what_a_next_call_depends_on_is_told(kind):
    build, what = KEEPING[kind]
    model = build()
    notes, _ = notes_of(model)
    assert len(notes) == 1
    assert what in notes[0]
    SEEN.clear()


@pytest.mark.parametrize(
    ("step", "attributes", "what"), [(by_batch, {"h": {}}, "changes h,"), (longest, {"n": 0}, "changes n,")]
)
def test_what_depends_on_it_at_some_sizes_only_is_told(step, attributes, what):
    notes, _ = notes_of(Model(step, **attributes), dynamic={"x": {0: "batch"}})
    assert len(notes) == 1
    assert what in notes[0]


def test_the_second_call_is_as_the_note_says(exporter):
    model = Model(last, h=torch.zeros(2, 4)).eval()
    notes, result = notes_of(model, exporter)
    assert "--state h" in notes[0]
    session = onnxruntime.InferenceSession(result.model_bytes)
    name = session.get_inputs()[0].name
    with torch.no_grad():
        alike = [
            torch.allclose(model(x), torch.from_numpy(session.run(None, {name: x.numpy()})[0]), atol=1e-5)
            for x in (X, X, -X)
        ]
    assert alike == [True, False, False]


def silent_counter(self, x):
    self.n += 1
    self.seen += x.mean()
    self.shapes.append(tuple(x.shape))
    return x * 2


def table(self, x):
    if self.h is None or self.h.shape[0] < x.shape[0]:
        self.h = torch.arange(4.0)
    return x + self.h


def last_result(self, x):
    self.h = x * 2
    return self.h


SILENT = {
    "statistics that nobody reads": lambda: Model(silent_counter, n=0, seen=torch.zeros(()), shapes=[]),
    "a table that is made once": lambda: Model(table, h=None),
    "a result that is kept to be looked at": lambda: Model(last_result, h=None),
    "normalisation": lambda: nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)),
}


@pytest.mark.parametrize("kind", SILENT)
def test_what_no_call_depends_on_is_not_told(kind):
    notes, _ = notes_of(SILENT[kind]())
    assert not notes
    assert not [s for s in doctor(SILENT[kind]().eval(), X).findings if "next call" in s.what]


def test_declared_state_is_not_told_and_the_rest_is():
    def both(self, x):
        self.h = x + self.h
        self.k = self.k * 0.5 + x
        return self.h + self.k

    def build():
        return Model(both, h=torch.zeros(2, 4), k=torch.ones(2, 4))

    assert not notes_of(build(), state=["h", "k"])[0]
    (note,) = notes_of(build(), state=["h"])[0]
    assert "changes k," in note


def test_a_model_that_writes_nothing_is_called_no_more(monkeypatch):
    calls = []
    monkeypatch.setattr(Observation, "_look_for_state", lambda self, before, subject, inputs, undo, results: results)
    model = nn.Linear(4, 4).eval()
    model.register_forward_hook(lambda *_: calls.append(1) if not torch.jit.is_tracing() else None)
    export_compat(model, X, exporter="torchscript")
    without = len(calls)
    monkeypatch.undo()
    calls.clear()
    export_compat(model, X, exporter="torchscript")
    assert len(calls) == without


def test_the_model_is_as_before():
    model = Model(added, h=torch.ones(2, 4)).eval()
    notes_of(model)
    assert torch.equal(model.h, torch.ones(2, 4))
    notes_of(Model(in_global))
    assert not SEEN


def test_the_doctor_names_the_remedy():
    (finding,) = [s for s in doctor(Inner().eval(), X).findings if "next call" in s.what]
    assert finding.place == "part.h"
    assert "state=['part.h']" in finding.action
    assert "--state part.h" in finding.action
