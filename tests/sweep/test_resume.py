"""A sweep that is killed loses no row and doubles none, and nothing of it goes on."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from torch_onnx_compat import CompatError
from torch_onnx_compat.sweep import Row, read_rows
from torch_onnx_compat.sweep.log import Log

MODELS = Path(__file__).parent / "models.py"
NAMES = ("double", "triple", "half", "raises", "segfaults", "leaves")
PROGRAM = """
import sys
from torch_onnx_compat.sweep import sweep

models, output, *names = sys.argv[1:]
sweep([f"{models}:{name}" for name in names], output, progress=lambda told: print("row", told.row, flush=True))
"""


def _start(output, *names):
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    command = [sys.executable, "-c", PROGRAM, str(MODELS), str(output), *names]
    return subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path})


def _finish(output, *names):
    with _start(output, *names) as process:
        text = process.communicate(timeout=300)[0].decode()
    assert process.returncode == 0
    return re.findall(r"spec='[^']*:(\w+)'", text)


def _names(output):
    return [json.loads(line)["spec"].rpartition(":")[2] for line in output.read_bytes().splitlines()]


def _descendants(process):
    found = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    pairs = [tuple(map(int, line.split())) for line in found.splitlines()]
    family = {process}
    while len(family) < len(family := family | {pid for pid, parent in pairs if parent in family}):
        pass
    return family - {process}


def _is_alive(process):
    try:
        return "State:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False


def test_a_kill_leaves_the_rows_so_far_and_nothing_running(tmp_path):
    output = tmp_path / "rows.jsonl"
    with _start(output, "double", "hangs", "triple") as process:
        while len(output.read_bytes().splitlines() if output.exists() else ()) < 1:
            time.sleep(0.05)
        time.sleep(0.3)  # into the one that hangs
        running = _descendants(process.pid)
        process.kill()
    assert running
    deadline = time.monotonic() + 10
    while any(map(_is_alive, running)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(map(_is_alive, running))
    assert _names(output) == ["double"]
    assert _finish(output, "double", "triple") == ["triple"]
    assert _names(output) == ["double", "triple"]


@pytest.mark.slow
def test_ten_kills_at_random_moments(tmp_path):
    output, moments = tmp_path / "rows.jsonl", random.Random(0)
    for _ in range(10):
        with _start(output, *NAMES) as process:
            time.sleep(moments.uniform(0.5, 15))
            process.send_signal(signal.SIGKILL)
    _finish(output, *NAMES)
    assert sorted(_names(output)) == sorted(NAMES)
    verdicts = {row.spec.rpartition(":")[2]: row.verdict for row in read_rows(output)}
    good = dict.fromkeys(("double", "triple", "half"), "verified")
    assert verdicts == {**good, "raises": "not built", "segfaults": "crashed", "leaves": "crashed"}


def _row(spec):
    return Row(spec, "ours", "verified", nodes=3)


def test_a_torn_last_line_is_taken_off(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(_row("a:b").to_line() + _row("a:c").to_line()[:20])
    assert [row.spec for row in read_rows(path)] == ["a:b"]
    with Log(path) as log:
        log.append(_row("a:d"))
    assert [row.spec for row in read_rows(path)] == ["a:b", "a:d"]
    assert path.read_bytes().count(b"\n") == 2


def test_the_last_of_two_rows_counts(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(Row("a:b", "ours", "out of time", limit=1.0).to_line() + _row("a:b").to_line())
    assert [row.verdict for row in read_rows(path)] == ["verified"]


def test_two_sweeps_do_not_share_a_file(tmp_path):
    with Log(tmp_path / "rows.jsonl"), pytest.raises(CompatError, match=r"rows\.jsonl: another sweep writes to it"):
        Log(tmp_path / "rows.jsonl")
    with Log(tmp_path / "rows.jsonl"):
        pass


def test_a_file_of_something_else_is_an_error(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"spec": "a:b", "by": "ours", "verdict": "verified"}\nhello\n')
    with pytest.raises(CompatError, match=r"rows\.jsonl:2: is no row of a sweep: JSONDecodeError"):
        read_rows(path)
    path.write_text("3\n")
    with pytest.raises(CompatError, match=r"rows\.jsonl:1: is no row of a sweep: TypeError"):
        read_rows(path)
    with pytest.raises(CompatError, match="cannot be written: No such file or directory"):
        Log(tmp_path / "nowhere" / "rows.jsonl")
    with pytest.raises(CompatError, match="cannot be read: No such file or directory"):
        read_rows(tmp_path / "nowhere.jsonl")


def test_a_row_survives_its_line():
    row = Row("a:b", "torch", "wrong", size="3x4", reason="naïve", nodes=5, export_s=1.25, versions="torch 2")
    assert Row.from_line(row.to_line()) == row
    assert b"family" not in row.to_line()
