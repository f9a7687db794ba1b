"""Which of several proven files is published: the first, the smallest, the fastest; and what goes wrong on the way."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from torch_onnx_compat import CompatError, backends, export_compat, selection
from torch_onnx_compat.engines import ENGINES
from torch_onnx_compat.prepare import prepare

X = torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.fc = nn.Conv2d(3, 8, 3), nn.Linear(8, 4)

    def forward(self, image):
        return self.fc(self.conv(image).relu().mean((2, 3)))


def export(path, **options):
    """A file that computes what the model computes, at another batch too, and nothing beside it."""
    model = Net().eval()
    result = export_compat(model, X, path, dynamic="batch", **options)
    wider = torch.cat([X, X.flip(0), X * 2])
    for batch in (X, wider):
        np.testing.assert_allclose(result(batch)[0], model(batch).detach(), rtol=1e-4, atol=1e-5)
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    return result


@pytest.fixture
def path(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    return folder / "m.onnx"


@pytest.mark.parametrize(("smaller", "larger"), [("torchscript", "dynamo"), ("dynamo", "torchscript")])
def test_the_smallest_file_is_taken(path, monkeypatch, smaller, larger):
    sizes = {smaller: 2_000_000, larger: 3_000_000}
    monkeypatch.setattr(selection, "_size", lambda file: sizes[file.result.exporter])
    result = export(path, optimize="size")
    assert result.exporter == smaller
    (note,) = [note for note in result.notes if "was taken" in note]
    assert f"{smaller} 2 MB" in note
    assert f"{larger} 3 MB" in note
    assert "choose" in result.seconds


def test_sizes_are_those_of_the_files(path):
    by_name = {name: export(path, exporter=name).path.stat().st_size for name in ("torchscript", "dynamo")}
    export(path, optimize="size")
    assert path.stat().st_size <= min(by_name.values()) + 64  # the list of entries in the metadata differs


def test_weights_beside_a_file_count(path, monkeypatch):
    seen = []
    size = selection._size
    monkeypatch.setattr(selection, "_size", lambda file: seen.append(size(file)) or seen[-1])
    model = nn.Linear(100, 100).eval()
    export_compat(model, torch.rand(1, 100), path, optimize="size", external_data=True)
    assert len(seen) == 2
    assert min(seen) > 4 * 100 * 100


@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
def test_the_fastest_file_is_taken(path, monkeypatch, exporter):
    def time(files, engine, inputs):
        assert engine.name == "onnxruntime"
        return [1.0 if file.result.exporter == exporter else 2.0 for file in files]

    monkeypatch.setattr(selection, "_time", time)
    assert export(path, optimize="latency").exporter == exporter


def test_of_two_as_fast_the_one_of_fewer_nodes_is_taken(path, monkeypatch):
    monkeypatch.setattr(selection, "_time", lambda files, *_: [1.02, 1.0])
    monkeypatch.setattr(selection, "_nodes", lambda file: 5 if file.result.exporter == "torchscript" else 6)
    assert export(path, optimize="latency").exporter == "torchscript"


def test_files_are_timed_in_the_engine(path, monkeypatch):
    found = []
    time = selection._time
    monkeypatch.setattr(selection, "_time", lambda *args: found.append(time(*args)) or found[-1])
    result = export(path, optimize="latency")
    (times,) = found
    assert len(times) == 2
    assert all(0 < milliseconds < 1000 for milliseconds in times)
    assert result.table


def test_with_one_exporter_there_is_nothing_to_choose(path):
    result = export(path, optimize="size", exporter="dynamo")
    assert result.exporter == "dynamo"
    assert not any("was taken" in note for note in result.notes)


# By default


def test_the_first_file_is_taken(path, monkeypatch):
    tried = []
    make = backends.export
    monkeypatch.setattr(backends, "export", lambda name, job: tried.append(name) or make(name, job))
    assert export(path).exporter == "torchscript"
    assert tried == ["torchscript"]


# What goes wrong


@pytest.mark.parametrize("error", [RuntimeError("a bug"), CompatError("a refusal")])
def test_a_proven_file_is_taken_where_another_exporter_fails(path, monkeypatch, error):
    make = backends.export

    def fail(name, job):
        if name == "dynamo":
            raise error
        return make(name, job)

    monkeypatch.setattr(backends, "export", fail)
    assert export(path, optimize="size").exporter == "torchscript"


def test_where_no_file_is_right_the_old_one_stays(path, monkeypatch):
    path.write_bytes(b"old")

    def fail(name, job):
        raise backends.ExportFailed(f"{name} does not want to.")

    monkeypatch.setattr(backends, "export", fail)
    with pytest.raises(CompatError, match="does not want to"):
        export_compat(Net().eval(), X, path, optimize="size")
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_an_engine_that_does_not_run_here_is_refused_before_any_work(path, monkeypatch):
    monkeypatch.setattr(ENGINES["onnxruntime"].__class__, "interpreter", lambda self: None)
    with pytest.raises(CompatError, match=r"times files in the target's engine.*optimize='size'"):
        export_compat(Net().eval(), X, path, optimize="latency", progress=lambda step: pytest.fail(step))


def test_a_file_of_other_inputs_is_not_timed_on_the_example(path):
    export(path)
    file = SimpleNamespace(draft=SimpleNamespace(path=path))
    assert set(selection._feeds(file, prepare(Net(), (X,)).inputs)) == {"image"}
    with pytest.raises(CompatError, match="input 'image' is none of the model's own"):
        selection._feeds(file, prepare(Net(), (X,), input_names=["picture"]).inputs)


@pytest.mark.parametrize("value", ["fast", 1, None])
def test_another_word_is_refused(value):
    with pytest.raises(CompatError, match=r"optimize=.*wanted True, False, 'size' or 'latency'"):
        export_compat(Net().eval(), X, optimize=value)
