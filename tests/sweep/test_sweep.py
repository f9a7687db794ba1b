"""sweep(): every end of a model is a row, rows are cached, and no kind of executor changes them."""

import re
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from torch_onnx_compat import CompatError
from torch_onnx_compat.sweep import read_rows, sweep
from torch_onnx_compat.sweep.client import stop_servers
from torch_onnx_compat.sweep.versions import versions_for

MODELS = Path(__file__).parent / "models.py"


@pytest.fixture(scope="module", autouse=True)
def _servers_end():
    yield
    stop_servers()


@pytest.fixture(scope="module")
def executor():
    """Threads whose servers live as long as the module: importing torch is what takes long."""
    with ThreadPoolExecutor(1) as pool:
        yield pool


def _specs(*names):
    return [f"{MODELS}:{name}" for name in names]


def _one(name, tmp_path, executor, **options):
    (row,) = sweep(_specs(name), tmp_path / "rows.jsonl", executor=executor, **options)
    return row


def test_a_good_model_is_verified(tmp_path, executor):
    row = _one("double", tmp_path, executor)
    assert (row.verdict, row.exporter, row.nodes > 0, row.reason) == ("verified", "torchscript", True, "")
    assert row.family == "double"
    assert row.memory > 100
    assert 0 < row.export_s < 60
    assert "torch " in row.versions


@pytest.mark.parametrize(
    ("name", "verdict", "reason"),
    [
        ("segfaults", "crashed", r"died of SIGSEGV in step '\w+' \(at ctypes/__init__.py:\d+\)"),
        ("aborts", "crashed", r"died of SIGABRT in step '\w+' \(at sweep/models.py:\d+\)"),
        ("leaves", "crashed", "ended with exit status 7 in step"),
        ("raises", "not built", "calling it failed with ValueError: no such model"),
        ("nothing", "not built", "unknown name in .*'nothing'"),
        ("chosen", "refused", r"sweep/models.py:\d+: a decision depends on the inputs"),
    ],
)
def test_a_bad_end_is_a_row(name, verdict, reason, tmp_path, executor):
    row = _one(name, tmp_path, executor)
    assert row.verdict == verdict
    assert re.search(reason, row.reason), row.reason


def test_a_hang_is_a_row(tmp_path, executor):
    start = time.monotonic()
    row = _one("hangs", tmp_path, executor, seconds=1.5)
    assert (row.verdict, row.limit) == ("out of time", 1.5)
    assert row.reason.startswith("more than 1.5 s, in step ")
    assert time.monotonic() - start < 20


def test_a_lack_of_memory_is_a_row(tmp_path, executor):
    row = _one("eats", tmp_path, executor, memory=1500)
    assert (row.verdict, row.limit) == ("out of memory", 1500)
    assert 1400 < row.memory < 3000


def test_what_a_model_starts_ends_with_it(tmp_path, executor, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert _one("writes_a_child", tmp_path, executor, seconds=2.0).verdict == "out of time"
    process = int((tmp_path / "child.pid").read_text())
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and Path(f"/proc/{process}/status").exists():
        if "State:\tZ" in Path(f"/proc/{process}/status").read_text():
            return  # nobody waits for it here, but it is dead
        time.sleep(0.05)
    assert not Path(f"/proc/{process}").exists()


def test_stock_torch_is_judged_by_the_same_numbers(tmp_path, executor):
    rows = sweep(_specs("batched"), tmp_path / "rows.jsonl", by=("ours", "torchscript"), executor=executor)
    assert [row.verdict for row in rows] == ["verified", "wrong"]
    assert "batch=" in rows[1].reason


def test_rows_are_cached_until_something_changes(tmp_path, executor):
    output, seen = tmp_path / "rows.jsonl", []
    model = tmp_path / "own.py"
    model.write_text(MODELS.read_text())
    specs = [f"{model}:double", f"{model}:hangs"]
    sweep(specs, output, executor=executor, seconds=4.0)
    before = output.read_bytes()

    def again(**options):
        seen.clear()
        sweep(specs, output, executor=executor, progress=lambda told: seen.append(told.row), **options)
        return [Path(row.spec).name for row in seen[1:]]

    assert again(seconds=4.0) == []
    assert again(seconds=2.0) == []  # it would hit the lower limit too
    assert output.read_bytes() == before
    assert again(seconds=5.0) == ["own.py:hangs"]
    assert sorted(again(seconds=5.0, opset=17)) == ["own.py:double", "own.py:hangs"]
    model.write_text(MODELS.read_text() + "\n")
    assert sorted(again(seconds=5.0)) == ["own.py:double", "own.py:hangs"]


def test_a_model_given_twice_is_one_row(tmp_path, executor):
    rows = sweep(_specs("double", "double"), tmp_path / "rows.jsonl", executor=executor)
    assert len(rows) == len(read_rows(tmp_path / "rows.jsonl")) == 1


def _outcomes(rows):
    return [row.outcome for row in rows]


@pytest.fixture(scope="module")
def expected(tmp_path_factory, executor):
    path = tmp_path_factory.mktemp("expected") / "rows.jsonl"
    return _outcomes(sweep(_specs("double", "segfaults", "triple"), path, executor=executor))


@pytest.mark.slow
def test_a_process_pool_gives_the_same_rows(tmp_path, expected):
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        rows = sweep(_specs("double", "segfaults", "triple"), tmp_path / "rows.jsonl", executor=pool)
    assert _outcomes(rows) == expected


def test_two_at_a_time_give_the_same_rows(tmp_path, expected):
    rows = sweep(_specs("double", "segfaults", "triple"), tmp_path / "rows.jsonl", jobs=2)
    assert _outcomes(rows) == expected


@pytest.mark.slow
def test_dask_gives_the_same_rows(tmp_path, expected):
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        executor = client.get_executor()
        rows = sweep(_specs("double", "segfaults", "triple"), tmp_path / "rows.jsonl", executor=executor)
    assert _outcomes(rows) == expected


def test_an_unknown_exporter_is_an_error(tmp_path):
    with pytest.raises(CompatError, match="unknown exporter of a sweep 'stock'; did you mean 'torch'"):
        sweep(_specs("double"), tmp_path / "rows.jsonl", by=("stock",))


def test_a_zoo_that_is_not_there_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ultralytics", None)
    monkeypatch.delitem(sys.modules, "torch_onnx_compat.zoo.ultralytics", raising=False)
    versions_for.cache_clear()
    with pytest.raises(CompatError, match="zoo 'ultralytics' needs 'ultralytics', which is not installed"):
        sweep(["ultralytics:yolo11n"], tmp_path / "rows.jsonl")
