"""run() and bench()."""

import sys
from xml.etree import ElementTree

import numpy as np
import onnxruntime
import pytest
from files.file_models import net

from torch_onnx_compat import CompatError, engines
from torch_onnx_compat.files import Bench, bench, run
from torch_onnx_compat.files.bench_plot import plot


def test_files_side_by_side(tmp_path):
    held = np.ones(50_000_000)  # 400 MB of this process, which are none of the engine's
    files = [net(tmp_path / "a.onnx"), net(tmp_path / "b.onnx", opset=13)]
    rows = bench(files, sizes=[{"n": 1}, {"n": 4}], rounds=2, runs=3)
    assert [(row.file, row.sizes) for row in rows] == [(str(f), {"n": n}) for f in files for n in (1, 4)]
    for row in rows:
        assert not row.error
        assert row.engine == f"onnxruntime {onnxruntime.__version__}"
        assert 0 < row.median_ms <= row.p90_ms < 1e4
        assert row.processor_ms > 0
        assert row.load_ms > 0
        assert 10 < row.memory_mb < held.nbytes / 1e6
        assert row.quartiles_ms[0] <= row.processor_ms <= row.quartiles_ms[1]
        assert np.isnan(row.engine_mb)
        assert row.throughput == pytest.approx(1e3 * row.sizes["n"] / row.processor_ms)
        assert set(row.to_dict()) >= {"median_ms", "p90_ms", "sizes"}


def test_numbers_that_make_no_sense(tmp_path):
    with pytest.raises(CompatError, match="rounds=0"):
        bench([net(tmp_path / "a.onnx")], rounds=0)
    with pytest.raises(CompatError, match="no dynamic axis 'm'; it has n"):
        bench([net(tmp_path / "a.onnx")], sizes=[{"m": 1}])


def test_batches_threads_and_a_picture(tmp_path):
    files = [net(tmp_path / "a.onnx"), net(tmp_path / "b.onnx", opset=13)]
    rows = bench(files, batches=(1, 3), threads=2, rounds=1, runs=2)
    assert [(row.sizes, row.threads) for row in rows] == [({"n": 1}, 2), ({"n": 3}, 2)] * 2
    picture = plot([*rows, Bench("c<.onnx", "tract 1", {}, error="refuses & says so")])
    root = ElementTree.fromstring(picture)
    bars = [float(one.get("width")) for one in root if one.tag.endswith("rect") and one.get("x")]
    medians = [row.median_ms for row in rows]
    assert len(bars) == 4
    assert np.argmax(bars) == np.argmax(medians)
    np.testing.assert_allclose(np.array(bars) / max(bars), np.array(medians) / max(medians), atol=0.02)
    assert "refuses &amp; says so" in picture
    with pytest.raises(CompatError, match=r"axis 0 of its inputs is fixed.*--dynamic batch"):
        bench([net(tmp_path / "c.onnx", batch=2)], batches=(1,))
    (row,) = bench([tmp_path / "c.onnx"], batches=(2,), rounds=1, runs=1)  # the batch that it is for
    assert not row.error
    with pytest.raises(CompatError, match="nothing sets the threads of 'tract'"):
        bench(files, engines=["tract"], threads=2)


def test_the_threads_reach_the_engine(tmp_path, monkeypatch):
    adapter = tmp_path / "adapter.py"
    adapter.write_text(
        "import os, numpy\n"
        "def version():\n    return '1'\n"
        "def load(path, feeds, outputs, variant):\n"
        "    return lambda feeds: [numpy.array([[float(os.environ['TORCH_ONNX_COMPAT_THREADS'])]])]\n"
    )

    class Telling(engines.Engine):
        @property
        def path(self):
            return adapter

    with engines.EngineProcess(Telling("telling", "onnxruntime", ()), threads=3) as process:
        assert process.run(net(tmp_path / "a.onnx"), {}, ["logits"]).outputs[0] == 3


def test_an_engine_that_builds_files_has_no_times(tmp_path, monkeypatch):
    adapter = tmp_path / "adapter.py"
    adapter.write_text(
        "import json, numpy, time\n"
        "def version():\n    return '1'\n"
        "def build(path, ranges, values, into, variant):\n"
        "    end = time.process_time() + 0.02\n"
        "    while time.process_time() < end:\n        pass\n"
        "    of = [{'name': n, 'type': 'FLOAT', 'shape': None} for n in ('image', 'logits')]\n"
        "    layer = {'name': 'n', 'kind': 'NEW', 'attributes': {}, 'inputs': of[:1], 'outputs': of[1:]}\n"
        "    network = {'inputs': of[:1], 'outputs': ['logits'], 'layers': [layer]}\n"
        "    numpy.savez(into, network=numpy.array(json.dumps(network)))\n"
        "    return 5_000_000\n"
    )
    fake = type("Fake", (engines.Engine,), {"path": adapter})("builds", "numpy", (), builds=True)
    monkeypatch.setenv(fake.variable, sys.executable)
    monkeypatch.setitem(engines.ENGINES, "builds", fake)
    (row,) = bench([net(tmp_path / "a.onnx")], engines=["builds"], sizes=[{"n": 2}], rounds=1, runs=1)
    assert (row.engine_mb, row.error) == (5.0, "")
    assert 20 <= row.load_ms < 2000
    assert row.memory_mb > 10
    assert np.isnan([row.median_ms, row.processor_ms, row.throughput]).all()
    assert "nan" not in plot([row, Bench("b", "e", {}, median_ms=1.0, p90_ms=2.0)])


def test_a_run(tmp_path):
    path = net(tmp_path / "a.onnx")
    image = np.random.default_rng(0).standard_normal((3, 3, 8, 8)).astype(np.float32)
    feeds, outputs = run(path, inputs={"image": image})
    assert feeds["image"] is not None
    np.testing.assert_allclose(
        outputs["logits"], onnxruntime.InferenceSession(str(path)).run(None, {"image": image})[0], 1e-5, 1e-6
    )
    feeds, outputs = run(path, sizes={"n": 5})
    assert (feeds["image"].shape, outputs["logits"].shape) == ((5, 3, 8, 8), (5, 5))
