"""Nothing leaks: after an export, and after one that failed at any step, everything is as it was."""

import copy
import gc
import hashlib
import os
import subprocess
import sys
import threading
import warnings
import weakref

import pytest
import torch
from torch import nn

import torch_onnx_compat.candidates as candidates_module
import torch_onnx_compat.export as export_module
from torch_onnx_compat import CompatError, attempt, export_compat, rewrite, symbolic
from torch_onnx_compat.backends import internals
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.garbage import collect_new_only
from torch_onnx_compat.prepare import export_conditions


class Model(nn.Module):
    """Writes to a buffer and to an attribute in forward, has hooks, tied weights and an alias."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.alias = self.conv
        self.first = nn.Linear(6, 6)
        self.second = nn.Linear(6, 6)
        self.second.weight = self.first.weight
        self.register_buffer("calls", torch.zeros(()))
        self.last = None

    def forward(self, x):
        self.calls += 1
        self.last = self.conv.weight.mean() * x.mean()
        return self.second(self.first(torch.remainder(self.norm(self.conv(x)), 0.7)).relu())


def fingerprint(model):
    """Everything of a model that an export could disturb."""
    state = {k: hashlib.sha256(v.detach().numpy().tobytes()).hexdigest() for k, v in model.state_dict().items()}
    identities = {
        k: (id(v), v.data_ptr(), v._version, v.requires_grad) for k, v in model.state_dict(keep_vars=True).items()
    }
    flags = {name: m.training for name, m in model.named_modules()}
    hooks = {name: (list(m._forward_hooks), list(m._forward_pre_hooks)) for name, m in model.named_modules()}
    attributes = {name: (sorted(vars(m)), type(m), id(m)) for name, m in model.named_modules()}
    return state, identities, flags, hooks, attributes, model.last


def surroundings():
    """Everything of torch and the process that an export could disturb."""
    registry = internals.symbolic_registry()
    overrides = {n: dict(g._functions._overrides) for n, g in registry._registry.items() if g._functions._overrides}
    return (
        overrides,
        vars(torch.autograd.Function).get("apply"),
        torch.backends.mha.get_fastpath_enabled(),
        torch.is_grad_enabled(),
        gc.isenabled(),
        bool(gc.get_freeze_count()),
        torch.nn.functional.grid_sample,
        torch.onnx.is_in_onnx_export(),
        list(warnings.filters),
        sys.stdout,
        len(torch.overrides._get_current_function_mode_stack()),
    )


@pytest.fixture
def model():
    model = Model().train()
    model.norm.eval()
    model.conv.register_forward_hook(lambda module, args, output: None)
    return model


@pytest.fixture
def user_symbolic():
    """A symbolic that the user registered before, at the very opset of the export."""

    def mine(g, x, y):
        raise AssertionError("the entry's symbolic has to win during the export")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.register_custom_op_symbolic("aten::remainder", mine, 20)
    yield mine
    torch.onnx.unregister_custom_op_symbolic("aten::remainder", 20)


def test_after_an_export(model, user_symbolic, exporter, tmp_path):
    before, around = fingerprint(model), surroundings()
    result = export_compat(model, torch.randn(2, 3, 8, 8), tmp_path / "m.onnx", exporter=exporter, dynamic="batch")
    assert fingerprint(model) == before
    assert surroundings() == around
    assert sorted(os.listdir(tmp_path)) == ["m.onnx"]
    assert result.path == tmp_path / "m.onnx"


STEPS = {
    "prepare": (export_module, "prepare"),
    "observe": (export_module, "Observation"),
    "plan": (candidates_module, "make_plan"),
    "rewrite": (candidates_module, "rewrite"),
    "export": (torch.onnx, "export"),
    "finish": (attempt, "finish"),
    "lint": (attempt, "lint"),
    "check": (attempt, "verify_file"),
    "publish": (export_module, "publish"),
}


@pytest.mark.parametrize("step", STEPS)
def test_after_a_failure_at(step, model, user_symbolic, exporter, tmp_path, monkeypatch):
    def fail(*args, **kwargs):
        raise RuntimeError(f"injected into {step}")

    path = tmp_path / "m.onnx"
    path.write_bytes(b"the old file")
    before, around = fingerprint(model), surroundings()
    with monkeypatch.context() as patch:
        patch.setattr(*STEPS[step], fail)
        with pytest.raises((RuntimeError, CompatError), match=f"injected into {step}"):
            export_compat(model, torch.randn(2, 3, 8, 8), path, exporter=exporter)
    assert fingerprint(model) == before
    assert surroundings() == around
    assert sorted(os.listdir(tmp_path)) == ["m.onnx"]
    assert path.read_bytes() == b"the old file"


def test_after_an_entry_that_raises(model, user_symbolic, exporter, tmp_path):
    @symbolic("aten::remainder", name="broken", always=True, registry=None)
    def broken(op, self, other):
        raise ZeroDivisionError("of all things")

    before, around = fingerprint(model), surroundings()
    with pytest.raises(CompatError, match=r"'broken'.*ZeroDivisionError: of all things.*exclude=\['broken'\]"):
        export_compat(model, torch.randn(2, 3, 8, 8), exporter=exporter, symbolics=[broken])
    assert fingerprint(model) == before
    assert surroundings() == around


@pytest.mark.parametrize("match", [nn.ReLU, torch.remainder, "torch.nn.functional.batch_norm"])
def test_after_a_rewrite_that_raises(match, model, exporter):
    @rewrite(match, name="broken", always=True, registry=None)
    def broken(*args, **kwargs):
        raise ZeroDivisionError("of all things")

    model.act = nn.ReLU()
    before, around = fingerprint(model), surroundings()
    with pytest.raises(CompatError, match=r"'broken'.*ZeroDivisionError: of all things.*exclude=\['broken'\]"):
        export_compat(model, torch.randn(2, 3, 8, 8), exporter=exporter, rewrites=[broken])
    assert fingerprint(model) == before
    assert surroundings() == around


def test_a_wrong_file_never_arrives(model, exporter, tmp_path):
    @rewrite(torch.remainder, name="wrong", always=True, registry=None)
    def wrong(self, other):
        return self * 0.5

    path = tmp_path / "m.onnx"
    path.write_bytes(b"the old file")
    with pytest.raises(VerificationError) as error:
        export_compat(model, torch.randn(2, 3, 8, 8), path, exporter=exporter, rewrites=[wrong])
    assert error.value.table
    assert not error.value.table[-1].ok
    assert path.read_bytes() == b"the old file"
    assert sorted(os.listdir(tmp_path)) == ["m.onnx"]


def test_eight_threads(tmp_path):
    # Made beforehand: threads share torch's random state.
    models = {n: nn.Sequential(nn.Linear(n, n), nn.ReLU(), nn.Linear(n, 3)).eval() for n in range(1, 9)}
    failures = []

    def work(width):
        try:
            exporter = "dynamo" if width % 4 == 0 else "torchscript"
            path = tmp_path / f"{width}.onnx"
            result = export_compat(models[width], torch.ones(2, width), path, exporter=exporter)
            (found,) = result.session().run(None, {"input": torch.ones(2, width).numpy()})
            torch.testing.assert_close(torch.from_numpy(found), models[width](torch.ones(2, width)))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(width,)) for width in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


def test_deepcopy_of_the_model_is_not_needed_for_history(exporter):
    """A tensor with a history, kept by an earlier run with gradients, is no obstacle; plain deepcopy refuses it."""
    model = Model()
    model(torch.randn(2, 3, 8, 8))
    assert model.last.grad_fn is not None
    with pytest.raises(RuntimeError):
        copy.deepcopy(model)
    export_compat(model, torch.randn(2, 3, 8, 8), exporter=exporter)
    assert model.last.grad_fn is not None


def test_threads_take_turns_with_the_conditions_of_an_export():
    """Each finds the fast path off while it works, whoever leaves first, and the caller's setting afterwards."""
    fast_path = torch.backends.mha
    before, seen = fast_path.get_fastpath_enabled(), []
    inside, leave = threading.Event(), threading.Event()

    def first():
        with export_conditions():
            inside.set()
            leave.wait(10)

    def second():
        inside.wait(10)
        with export_conditions():
            seen.append(fast_path.get_fastpath_enabled())

    threads = [threading.Thread(target=work) for work in (first, second)]
    for thread in threads:
        thread.start()
    inside.wait(10)
    assert not seen
    leave.set()
    for thread in threads:
        thread.join()
    assert seen == [False]
    assert fast_path.get_fastpath_enabled() == before


class Larger(nn.Module):
    """Decides by its values, in code that a collector was told to leave alone before the export."""

    def forward(self, x):
        if x.mean() > 0:
            x = x * 2
        return x + 1


@pytest.mark.parametrize("is_frozen", [False, True], ids=["as usual", "frozen"])
def test_the_collector(is_frozen, tmp_path):
    """What the caller told it to leave alone it leaves alone; decisions in such code are found all the same."""
    unfreeze = gc.get_freeze_count() == 0
    if is_frozen:
        gc.freeze()
    try:
        result = export_compat(Larger(), (torch.rand(2, 3),), tmp_path / "x.onnx", dynamic="batch")
        assert result.table
        assert bool(gc.get_freeze_count()) is (is_frozen or not unfreeze)
        assert gc.isenabled()
    finally:
        if unfreeze:
            gc.unfreeze()


class Cycle:
    """Garbage that only the collector finds."""

    def __init__(self):
        self.itself = self


@pytest.fixture
def small_heap():
    """Sets aside what other tests left: Python walks through old objects where the new ones are a quarter of them."""
    gc.freeze()
    gc.collect()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("small_heap")
def test_garbage_of_many_exports_is_collected():
    """The collector walks through old objects between exports where it does not during one."""
    first_of_each = []
    for _ in range(6):
        with collect_new_only():
            made = [Cycle() for _ in range(100_000)]
            first_of_each.append(weakref.ref(made[0]))
        del made
        assert [[] for _ in range(gc.get_threshold()[0] + 1)]  # the collector looks when so many objects are new
    assert None in [reference() for reference in first_of_each]


def test_what_rewritten_code_imports_is_there_before_any_capture():
    """torch.export has functions of its own for Python's max and min, which would be taken for Python's."""
    code = (
        "import sys, torch_onnx_compat.control_flow; print('torch_onnx_compat.control_flow.run.callees' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "True"


class Slotted(nn.Module):
    """copy.deepcopy loses what a module keeps outside of its dictionary."""

    __slots__ = ("flip", "scale")

    def __init__(self):
        super().__init__()
        self.flip, self.scale = torch.flip, [2.0]

    def forward(self, x):
        return self.flip(x, (1,)) * self.scale[0]


def test_slots_are_copied(exporter):
    model = Slotted().eval()
    result = export_compat(model, torch.randn(2, 3), exporter=exporter)
    x = torch.randn(2, 3)
    torch.testing.assert_close(torch.as_tensor(result(x)[0]), model(x))
    assert model.scale == [2.0]


@pytest.fixture
def operator_with_a_bool():
    """An operator of the caller whose kernel decides, without a fake: torch.export ends in its own recursion."""
    library = torch.library.Library("torch_onnx_compat_isolation", "FRAGMENT")
    library.define("large(Tensor x) -> bool")
    library.impl("large", lambda x: bool(x.max() > 60.5), "CompositeExplicitAutograd")
    yield torch.ops.torch_onnx_compat_isolation.large
    library._destroy()


def test_torch_traces_after_an_error_inside_its_operators(operator_with_a_bool):
    class Model(nn.Module):
        def forward(self, x):
            return x * 2 if operator_with_a_bool(x) else x

    with pytest.raises(CompatError):
        export_compat(Model(), torch.randn(3, 5), exporter="dynamo")
    weight = torch.ones(3, requires_grad=True)
    assert (weight * 2).grad_fn is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.trace(nn.ReLU(), torch.randn(3))


class Labelled(torch.Tensor):
    """A tensor that knows more than its values."""


class Labels(nn.Module):
    """Keeps tensors with attributes, and makes a subclass of Tensor in forward."""

    def __init__(self):
        super().__init__()
        self.table, self.plain = torch.rand(4).as_subclass(Labelled), torch.rand(4)
        self.table.factor = self.plain.factor = 3
        self.plain.owner = self

    def forward(self, x):
        made = Labelled([1.0, 2.0, 3.0, 4.0]).as_subclass(torch.Tensor)
        return x * self.table.factor + self.plain * self.plain.factor + made


def test_attributes_and_subclasses_of_tensors(exporter):
    """A copy of a tensor has its attributes; a class of tensors can be called, and is afterwards as it was."""
    model = Labels().eval()
    result = export_compat(model, torch.rand(3, 4), dynamic="batch", exporter=exporter)
    x = torch.rand(5, 4)
    torch.testing.assert_close(result(x)[0], model(x))
    assert "__new__" not in vars(Labelled)
    assert type(Labelled(2, 3)) is Labelled
