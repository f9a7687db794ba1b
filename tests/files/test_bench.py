"""run() and bench()."""

import numpy as np
import onnxruntime
import pytest
from files.file_models import net

from torch_onnx_compat import CompatError
from torch_onnx_compat.files import bench, run


def test_files_side_by_side(tmp_path):
    files = [net(tmp_path / "a.onnx"), net(tmp_path / "b.onnx", opset=13)]
    rows = bench(files, sizes=[{"n": 1}, {"n": 4}], rounds=2, runs=3)
    assert [(row.file, row.sizes) for row in rows] == [(str(f), {"n": n}) for f in files for n in (1, 4)]
    for row in rows:
        assert not row.error
        assert row.engine == f"onnxruntime {onnxruntime.__version__}"
        assert 0 < row.median_ms <= row.p90_ms < 1e4
        assert row.processor_ms > 0
        assert row.load_ms > 0
        assert 10 < row.memory_mb < 10_000
        assert row.throughput == pytest.approx(1e3 * row.sizes["n"] / row.processor_ms)
        assert set(row.to_dict()) >= {"median_ms", "p90_ms", "sizes"}


def test_numbers_that_make_no_sense(tmp_path):
    with pytest.raises(CompatError, match="rounds=0"):
        bench([net(tmp_path / "a.onnx")], rounds=0)
    with pytest.raises(CompatError, match="no dynamic axis 'm'; it has n"):
        bench([net(tmp_path / "a.onnx")], sizes=[{"m": 1}])


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
