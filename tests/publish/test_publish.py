"""A file arrives whole or not at all, and what was there before is kept until then."""

import os
import shutil
import signal
import socket
import stat
import sys
import time
import traceback
import warnings

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest
import torch
from fuzz.faults import Tracer
from torch import nn

from torch_onnx_compat import CompatError, attempt, export_compat
from torch_onnx_compat.publish import destination, weights_beside, workspace
from torch_onnx_compat.publish import publish as publishing

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="special files and locks of POSIX systems")
X = torch.rand(2, 64)


class Scale(nn.Module):
    """Its file computes x @ (k * ones)."""

    def __init__(self, k):
        super().__init__()
        self.weight = nn.Parameter(torch.full((64, 64), float(k)))

    def forward(self, x):
        return x @ self.weight


def export(k, path, **options):
    return export_compat(Scale(k), X, path, exporter="torchscript", **options)


def factor(path):
    """Which Scale a file is of, in onnxruntime and as onnx loads it."""
    onnx.load(path)
    session = onnxruntime.InferenceSession(path)
    (y,) = session.run(None, {session.get_inputs()[0].name: np.full((2, 64), 1 / 64, np.float32)})
    assert (y == y[0, 0]).all()
    return round(float(y[0, 0]), 4)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def drafted(k):
    """The model of Scale, as the last step of an export gets it."""
    weight = onnx.numpy_helper.from_array(np.full((64, 64), k, np.float32), "weight")
    shape = (onnx.helper.make_tensor_value_info(name, 1, [2, 64]) for name in "xy")
    x, y = shape
    graph = onnx.helper.make_graph([onnx.helper.make_node("MatMul", ["x", "weight"], ["y"])], "g", [x], [y], [weight])
    return ir.from_proto(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=8))


def put(k, path, external=True, stages=()):
    with publishing.draft(drafted(k), path, external) as draft:
        draft.write_stages(dict(stages))
        publishing.publish(draft)


# The pair of a model and its weights


def test_every_second_export_finds_the_plain_name_free(tmp_path):
    path = tmp_path / "m.onnx"
    for k in range(1, 5):
        put(k, path)
        assert factor(path) == k
        assert len(names(tmp_path)) == 2
        assert ("m.onnx.data" in names(tmp_path)) == (k % 2 == 1)
    put(5, path, external=False)
    assert factor(path) == 5
    assert names(tmp_path) == ["m.onnx"]


def test_no_weights_beside_a_model_whose_tensors_are_small(tmp_path):
    export_compat(nn.Linear(2, 2), torch.rand(1, 2), tmp_path / "m.onnx", exporter="torchscript", external_data=True)
    assert names(tmp_path) == ["m.onnx"]


def test_weights_that_are_not_the_model_s_stay(tmp_path):
    path = tmp_path / "m.onnx"
    (tmp_path / "m.onnx.data").write_bytes(b"somebody's")
    put(1, path)
    put(2, path)
    assert factor(path) == 2
    assert (tmp_path / "m.onnx.data").read_bytes() == b"somebody's"
    assert len(names(tmp_path)) == 3


def test_weights_that_another_model_takes_too_stay(tmp_path):
    path, copy = tmp_path / "m.onnx", tmp_path / "copy.onnx"
    put(1, path)
    copy.write_bytes(path.read_bytes())
    put(2, path)
    put(3, path)
    assert (factor(copy), factor(path)) == (1, 3)
    assert "m.onnx.data" in names(tmp_path)


def test_weights_that_an_old_model_awaits_are_not_given_to_it(tmp_path):
    """Between the renames a graph whose weights are lost would take the new ones for its own."""
    path = tmp_path / "m.onnx"
    put(1, path)
    (tmp_path / "m.onnx.data").unlink()
    put(2, path)
    assert factor(path) == 2
    assert "m.onnx.data" not in names(tmp_path)


STAGES = {"preprocess": b"new", "part1": b"new"}
OWN = tuple(module.__file__ for module in (destination, publishing, weights_beside, workspace))


def interrupted(path, number, error, stages):
    """Publishes 2.0 with an error at the n-th line of the modules that do it; says whether there is such a line."""
    left = [number]

    def visit(place):
        left[0] -= 1
        if left[0] == 0:
            raise error

    with Tracer(visit, OWN).active():
        put(2, path, stages=stages)
    return left[0] <= 0


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # an interrupted generator's last words
@pytest.mark.parametrize("stages", [{}, STAGES], ids=["pair", "stages"])
@pytest.mark.parametrize(
    "earlier", [1, pytest.param(2, marks=pytest.mark.slow)], ids=["plain name taken", "plain name free"]
)
def test_an_interrupt_at_any_line_leaves_one_whole_pair(tmp_path, stages, earlier):
    number, seen = 0, set()
    while True:
        number += 1
        folder = tmp_path / str(number)
        folder.mkdir()
        path = folder / "m.onnx"
        for _ in range(earlier):
            put(1, path)
        for name in stages:
            (folder / f"m.{name}.onnx").write_bytes(b"old")
        error = [KeyboardInterrupt, MemoryError, OSError][number % 3]("injected")
        try:
            if not interrupted(path, number, error, stages):
                break
        except (KeyboardInterrupt, MemoryError, CompatError, OSError):
            pass
        found = factor(path)
        assert found in (1, 2)
        assert {(folder / f"m.{name}.onnx").read_bytes() for name in stages} <= {{1: b"old", 2: b"new"}[found]}
        is_kept = isinstance(error, OSError) and found == 2  # the old weights could not be removed
        assert len(names(folder)) in {2 + len(stages), 2 + len(stages) + is_kept}
        seen.add(found)
    assert seen == {1, 2}
    assert number > 100


@POSIX
def test_two_processes_at_one_place_leave_one_pair(tmp_path):
    path = tmp_path / "m.onnx"
    put(0.5, path)

    def work(k):
        for _ in range(25):
            put(k, path)

    children = [forked(lambda k=k: work(k)) for k in (1, 2, 3)]
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
    assert factor(path) in (1, 2, 3)
    assert len(names(tmp_path)) == 2


def forked(work):
    """A child process that does some work, and ends with 0 if nothing was raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python warns of forks beside threads; the child uses none
        child = os.fork()
    if child:
        return child
    try:
        work()
        os._exit(0)
    except BaseException:  # whatever ends the child, the parent's report is to show it
        traceback.print_exc()
    finally:
        os._exit(1)


# Temporary folders


def killed_in_a_workspace(folder):
    def work():
        with workspace.workspace(folder, Exception) as made:
            (made / "partial").write_bytes(b"much")
            os.kill(os.getpid(), signal.SIGKILL)

    os.waitpid(forked(work), 0)


@POSIX
def test_what_a_killed_process_left_is_removed_by_the_next_export(tmp_path):
    killed_in_a_workspace(tmp_path)
    assert len(names(tmp_path)) == 1
    put(1, tmp_path / "other.onnx", external=False)
    assert names(tmp_path) == ["other.onnx"]


@POSIX
def test_a_living_process_keeps_its_folder(tmp_path):
    with workspace.workspace(tmp_path, Exception) as mine:
        put(1, tmp_path / "m.onnx", external=False)
        assert mine.is_dir()

        def work():
            with workspace.workspace(tmp_path, Exception):
                time.sleep(60)

        child = forked(work)
        try:
            while len(list(tmp_path.glob(f"*/{workspace._HELD}"))) < 2:  # before, its folder may be taken for stale
                time.sleep(0.01)
            put(2, tmp_path / "m.onnx", external=False)
            assert len(names(tmp_path)) == 3
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    put(3, tmp_path / "m.onnx", external=False)
    assert names(tmp_path) == ["m.onnx"]


@POSIX
def test_a_folder_that_another_process_took_for_stale_is_made_anew(tmp_path, monkeypatch):
    lost = []
    mark = workspace._mark

    def lose(folder):
        if not lost:
            folder.rmdir()
        lost.append(folder)
        return mark(folder)

    monkeypatch.setattr(workspace, "_mark", lose)
    with workspace.workspace(tmp_path, Exception) as made:
        assert made.is_dir()
        assert len(lost) == 2
    assert names(tmp_path) == []


@POSIX
def test_a_folder_that_another_process_looks_at_for_long_is_left_to_it(tmp_path, monkeypatch):
    """On a busy machine the other one may stand still between its look and the removal."""
    looked_at = []
    lock = workspace._lock

    def look(handle, patience):
        if not looked_at:
            looked_at.append(next(iter(tmp_path.iterdir())))
            return False
        if looked_at[0].exists():
            looked_at[0].rmdir()
        return lock(handle, patience)

    monkeypatch.setattr(workspace, "_lock", look)
    with workspace.workspace(tmp_path, Exception) as made:
        assert made.is_dir()
        assert made != looked_at[0]
    assert names(tmp_path) == []


@POSIX
def test_a_folder_that_is_gone_before_it_is_held_is_made_anew(tmp_path, monkeypatch):
    gone = []
    hold = workspace.hold

    def lose(folder, patience):
        if not gone and folder != tmp_path:
            gone.append(folder)
            folder.rmdir()
        return hold(folder, patience)

    monkeypatch.setattr(workspace, "hold", lose)
    with workspace.workspace(tmp_path, Exception) as made:
        assert made.is_dir()
    assert gone
    assert names(tmp_path) == []


def test_other_folders_with_such_names_stay(tmp_path):
    foreign = [".torch_onnx_compat_ab12cd34", ".torch_onnx_compat_0123456789abcdef"]
    for name in foreign:  # one of an older version; one that was never held, as where folders cannot be
        (tmp_path / name).mkdir()
        (tmp_path / name / "m.onnx").touch()
    put(1, tmp_path / "m.onnx", external=False)
    assert names(tmp_path) == sorted([*foreign, "m.onnx"])


@POSIX
def test_without_locks_new_weights_never_take_the_plain_name(tmp_path, monkeypatch):
    monkeypatch.setattr(workspace, "_lock", lambda handle, patience: None)
    for k in (1, 2, 3):
        put(k, tmp_path / "m.onnx")
        assert factor(tmp_path / "m.onnx") == k
        assert len(names(tmp_path)) == 2
        assert "m.onnx.data" not in names(tmp_path)


# Places


@POSIX
@pytest.mark.parametrize("kind", ["a folder", "a named pipe", "a socket", "a device"])
def test_special_files_are_refused_before_any_work(kind, tmp_path, monkeypatch):
    path = tmp_path / "m.onnx"
    monkeypatch.chdir(tmp_path)  # a socket's path must be short
    server = socket.socket(socket.AF_UNIX)
    if kind == "a folder":
        path.mkdir()
    elif kind == "a named pipe":
        os.mkfifo(path)
    elif kind == "a socket":
        server.bind("m.onnx")
    else:
        path = "/dev/null"
    monkeypatch.setattr(Scale, "forward", None)
    with pytest.raises(CompatError, match=rf"^cannot write '.*': it is {kind}, and a rename would replace it; give"):
        export(1, path)
    server.close()
    assert not stat.S_ISREG(os.stat(path).st_mode)


@POSIX
@pytest.mark.parametrize("external", [False, True])
def test_a_symbolic_link_stays_and_its_target_is_replaced(external, tmp_path):
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "target.onnx", tmp_path / "link.onnx"
    link.symlink_to("real/target.onnx")
    for k in (1, 2):  # it leads nowhere at first
        result = export(k, link, external_data=external)
        assert link.is_symlink()
        assert not target.is_symlink()
        assert factor(result.path) == factor(target) == k
    assert names(tmp_path) == ["link.onnx", "real"]
    assert len(names(tmp_path / "real")) == 1 + external


@POSIX
def test_a_symbolic_link_to_itself(tmp_path):
    (tmp_path / "m.onnx").symlink_to("m.onnx")
    with pytest.raises(CompatError, match=r"m.onnx'? ?(is a symbolic link that leads back to itself|.*symbolic links)"):
        export(1, tmp_path / "m.onnx")


@POSIX
@pytest.mark.parametrize("external", [False, True])
def test_the_old_file_s_permissions_are_kept(external, tmp_path):
    path = tmp_path / "m.onnx"
    export(1, path, external_data=external)
    path.chmod(0o640)
    export(2, path, external_data=external)
    assert {stat.S_IMODE(p.stat().st_mode) for p in tmp_path.iterdir()} == {0o640}


@POSIX
def test_a_new_file_has_the_permissions_that_the_process_gives(tmp_path):
    before = os.umask(0o027)
    try:
        export(1, tmp_path / "m.onnx", external_data=True)
        put(1, tmp_path / "n.onnx", stages={"preprocess": b""})
    finally:
        os.umask(before)
    assert {stat.S_IMODE(p.stat().st_mode) for p in tmp_path.iterdir()} == {0o640}


@POSIX
def test_a_hard_link_keeps_the_old_file(tmp_path):
    path, other = tmp_path / "m.onnx", tmp_path / "other.onnx"
    export(1, path)
    os.link(path, other)
    export(2, path)
    assert (factor(path), factor(other)) == (2, 1)


def test_a_stage_whose_place_is_a_folder(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(b"old")
    (tmp_path / "m.part1.onnx").write_bytes(b"older")
    (tmp_path / "m.part2.onnx").mkdir()
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
    with pytest.raises(CompatError, match=r"cannot write '.*m\.part2\.onnx': it is a folder"):
        export_compat(model, torch.rand(2, 4), path, split=["0"], exporter="torchscript")
    assert path.read_bytes() == b"old"
    assert (tmp_path / "m.part1.onnx").read_bytes() == b"older"
    assert names(tmp_path) == ["m.onnx", "m.part1.onnx", "m.part2.onnx"]


def test_stages_are_put_back_when_the_model_cannot_be_replaced(tmp_path, monkeypatch):
    path = tmp_path / "m.onnx"
    put(1, path, stages={"preprocess": b"old"})
    replace = os.replace

    def fail(source, target):
        if os.fspath(target).endswith("m.onnx"):
            raise PermissionError(13, "Permission denied")
        replace(source, target)

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(CompatError, match="Permission denied; the old file, if any, is as it was"):
        put(2, path, stages={"preprocess": b"new", "part1": b"new"})
    assert factor(path) == 1
    assert names(tmp_path) == ["m.onnx", "m.onnx.data", "m.preprocess.onnx"]
    assert (tmp_path / "m.preprocess.onnx").read_bytes() == b"old"


def test_nothing_is_published_before_the_result_is_made(tmp_path, monkeypatch):
    path = tmp_path / "m.onnx"
    export(1, path)

    def fail(*args, **kwargs):
        raise RuntimeError("no result")

    monkeypatch.setattr(attempt, "ExportResult", fail)
    with pytest.raises(RuntimeError, match="no result"):
        export(2, path)
    assert factor(path) == 1
    assert names(tmp_path) == ["m.onnx"]


@pytest.mark.parametrize("folder", ["missing", "file"])
def test_a_folder_that_is_none_is_refused_before_any_work(folder, tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setattr(Scale, "forward", None)
    with pytest.raises(CompatError, match=r"cannot write '.*m\.onnx': (there is no folder|Not a directory)"):
        export(1, tmp_path / folder / "m.onnx")


# File objects


class Slow:
    """An unbuffered file, which may take a part only."""

    def __init__(self):
        self.data = b""

    def write(self, data):
        self.data += bytes(data[:100])
        return min(100, len(data))


def test_a_file_that_takes_its_bytes_in_parts():
    slow = Slow()
    export(3, slow)
    assert onnx.load_model_from_string(slow.data).graph.node


def test_files_that_cannot_be_written_to(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"")
    with path.open("rb") as reading, pytest.raises(CompatError, match=r"f is a file opened for reading \(BufferedRead"):
        export(1, reading)
    with path.open("wb") as closed:
        pass
    with pytest.raises(CompatError, match=r"f is a closed file \(BufferedWriter\); wanted an open one"):
        export(1, closed)
    with path.open("w") as text, pytest.raises(CompatError, match=r"f is a text file \(TextIOWrapper\)"):
        export(1, text)


def test_a_workspace_that_another_process_removes_just_now(tmp_path, monkeypatch):
    """Its lock is given back before it is removed, so that another process may take it for a dead one's."""
    with workspace.workspace(tmp_path, lambda error: error) as folder:
        shutil.rmtree(folder)
        monkeypatch.setattr(type(folder), "exists", lambda _: True)  # as it was a moment ago
    monkeypatch.undo()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("ending", [".py", ".pt", ".toml"])
def test_what_a_model_is_made_of_is_not_replaced(tmp_path, ending):
    path = tmp_path / f"net{ending}"
    path.write_bytes(b"old")
    with pytest.raises(CompatError, match=rf"there is a \{ending} file, which would be lost.*such as net.onnx"):
        export_compat(nn.Linear(4, 2), torch.rand(2, 4), path)
    assert path.read_bytes() == b"old"
    destination.check_destination(path)  # a profile is written again to its own name
