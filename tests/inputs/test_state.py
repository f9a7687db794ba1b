"""State in and out: caches in objects of their own, recurrent layers' tuples, and what modules keep themselves."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from torch_onnx_compat import CompatError, export_compat, rewrite
from torch_onnx_compat.catalogue.entry import EXPORTERS


class Layer:
    """The keys of one layer so far, (N, T, D)."""

    def __init__(self, keys: Tensor | None = None) -> None:
        self.keys = keys
        self.calls: list[int] = []
        self.kind = torch.float32

    def update(self, keys: Tensor) -> Tensor:
        self.keys = keys if self.keys is None else torch.cat([self.keys, keys], 1)
        self.calls.append(1)
        return self.keys


class Cache:
    """What a decoder remembers; as in transformers, no container that torch knows."""

    def __init__(self, layers: list[Layer]) -> None:
        self.layers = layers


class Decoder(nn.Module):
    """Two layers of attention over what the cache holds and the new rows."""

    def __init__(self) -> None:
        super().__init__()
        self.steps = nn.ModuleList(nn.Linear(8, 8) for _ in range(2))

    def forward(self, x: Tensor, cache: Cache, mask: Tensor | None = None) -> tuple[Tensor, Cache]:
        for step, layer in zip(self.steps, cache.layers, strict=True):
            keys = layer.update(step(x))
            scores = x @ keys.transpose(1, 2)
            if mask is not None:
                missing = keys.shape[1] - mask.shape[1]
                if missing > 0:
                    mask = nn.functional.pad(mask, (0, missing))
                scores = scores.masked_fill(mask[:, None] == 0, -1e4)
            x = x + scores.softmax(-1) @ keys
        return x, cache


def decoder() -> Decoder:
    torch.manual_seed(0)
    return Decoder().eval()


def held(rows: int = 4) -> Cache:
    return Cache([Layer(torch.randn(2, rows, 8)) for _ in range(2)])


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_cache_goes_in_and_out_by_name(exporter: str) -> None:
    model, cache = decoder(), held()
    before = [layer.keys for layer in cache.layers]
    result = export_compat(
        model,
        (torch.randn(2, 3, 8), cache),
        exporter=exporter,
        dynamic={"x": {0: "batch", 1: "new"}, "cache": {0: "batch", 1: "past"}},
    )
    session = result.session()
    assert [i.name for i in session.get_inputs()] == ["x", "cache_layers_0_keys", "cache_layers_1_keys"]
    assert [o.name for o in session.get_outputs()] == ["output_0", "output_1_layers_0_keys", "output_1_layers_1_keys"]
    assert {row.case for row in result.table} >= {"example", "batch=1", "new=1", "past=1"}
    assert [layer.keys for layer in cache.layers] == before
    assert not cache.layers[0].calls

    first = [torch.randn(1, 2, 8), torch.randn(1, 5, 8), torch.randn(1, 5, 8)]
    second = torch.randn(1, 1, 8)
    eager = Cache([Layer(t) for t in first[1:]])
    model(first[0], eager)
    wanted, _ = model(second, eager)
    _, *kept = session.run(
        None, dict(zip([i.name for i in session.get_inputs()], (t.numpy() for t in first), strict=True))
    )
    found = session.run(None, {"x": second.numpy(), "cache_layers_0_keys": kept[0], "cache_layers_1_keys": kept[1]})
    torch.testing.assert_close(torch.from_numpy(found[0]), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_an_axis_may_be_the_sum_of_others(exporter: str) -> None:
    result = export_compat(
        decoder(),
        (torch.randn(2, 3, 8), held(), torch.ones(2, 7)),
        exporter=exporter,
        dynamic={
            "x": {0: "batch", 1: "new"},
            "cache": {0: "batch", 1: "past"},
            "mask": {0: "batch", 1: "past + new"},
        },
    )
    assert {row.case for row in result.table} >= {"new=1", "past=1"}
    mask = result.session().get_inputs()[3]
    assert (mask.name, mask.shape) == ("mask", ["batch", "past + new"])


def test_an_empty_cache_is_not_filled_by_the_export() -> None:
    empty = Cache([Layer(), Layer()])
    result = export_compat(decoder(), (torch.randn(2, 3, 8), empty), dynamic={"x": {0: "batch", 1: "new"}})
    assert [i.name for i in result.session().get_inputs()] == ["x"]
    assert [layer.keys for layer in empty.layers] == [None, None]


@pytest.mark.parametrize(
    ("axis", "found"),
    [
        ("past + rest", "'past \\+ rest' is 7 long.*should be"),
        ("past * new", "no sum of multiples"),
        ("a + b", "no input"),
    ],
)
def test_an_axis_that_is_no_such_sum_is_an_error(axis: str, found: str) -> None:
    dynamic = {"x": {1: "new"}, "cache": {1: "past"}, "mask": {1: axis}}
    if "rest" in axis:
        dynamic["x"] = {1: "new", 0: "rest"}
    with pytest.raises(CompatError, match=found):
        export_compat(decoder(), (torch.randn(2, 3, 8), held(), torch.ones(2, 7)), dynamic=dynamic)


@pytest.mark.slow
@pytest.mark.parametrize("exporter", EXPORTERS)
@pytest.mark.parametrize("name", ["Llama", "GPT2"])
def test_a_decoders_step(name: str, exporter: str) -> None:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    sizes = {"num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100, "hidden_size": 32}
    config = getattr(transformers, f"{name}Config")(**sizes, bos_token_id=0, eos_token_id=0)
    model = getattr(transformers, f"{name}LMHeadModel" if name == "GPT2" else f"{name}ForCausalLM")(config).eval()
    with torch.no_grad():
        cache = model(torch.randint(0, 100, (1, 7)), use_cache=True).past_key_values
    result = export_compat(
        model,
        kwargs={
            "input_ids": torch.randint(0, 100, (1, 1)),
            "attention_mask": torch.ones(1, 8, dtype=torch.long),
            "past_key_values": cache,
        },
        exporter=exporter,
        dynamic={
            "input_ids": {0: "batch"},
            "attention_mask": {0: "batch", 1: "past + 1"},
            "past_key_values": {0: "batch", 2: "past"},
        },
    )
    assert {row.case for row in result.table} >= {"batch=5", "past=1"}
    assert cache.get_seq_length() == 7
    assert "past_key_values_layers_1_values" in {i.name for i in result.session().get_inputs()}


@pytest.mark.slow
@pytest.mark.parametrize("exporter", EXPORTERS)
@pytest.mark.parametrize("name", ["Llama", "GPT2"])
def test_several_new_tokens_at_once(name: str, exporter: str) -> None:
    # transformers decides on the number of new tokens (``q_length == 1``): masked through TorchScript.
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    sizes = {"num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100, "hidden_size": 32}
    config = getattr(transformers, f"{name}Config")(**sizes, bos_token_id=0, eos_token_id=0)
    model = getattr(transformers, f"{name}LMHeadModel" if name == "GPT2" else f"{name}ForCausalLM")(config).eval()
    with torch.no_grad():
        cache = model(torch.randint(0, 100, (1, 7)), use_cache=True).past_key_values
    result = export_compat(
        model,
        kwargs={
            "input_ids": torch.randint(0, 100, (1, 3)),
            "attention_mask": torch.ones(1, 10, dtype=torch.long),
            "past_key_values": cache,
        },
        exporter=exporter,
        dynamic={
            "input_ids": {0: "batch", 1: "new"},
            "attention_mask": {0: "batch", 1: "past + new"},
            "past_key_values": {0: "batch", 2: "past"},
        },
    )
    assert {row.case for row in result.table} >= {"batch=5", "new=1", "new=5", "past=1"}


class Recurrent(nn.Module):
    def __init__(self, kind: type[nn.RNNBase]) -> None:
        super().__init__()
        self.layer = kind(4, 8, num_layers=2, batch_first=True)

    def forward(self, x: Tensor, state: object) -> object:
        return self.layer(x, state)


@pytest.mark.parametrize("exporter", EXPORTERS)
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_recurrent_state_goes_in_and_out(kind: type[nn.RNNBase], exporter: str) -> None:
    state = torch.randn(2, 3, 8)
    result = export_compat(
        Recurrent(kind),
        (torch.randn(3, 5, 4), (state, state * 2) if kind is nn.LSTM else state),
        exporter=exporter,
        dynamic={"x": {0: "batch", 1: "time"}, "state": {1: "batch"}},
    )
    names = ["output_0", "output_1_0", "output_1_1"] if kind is nn.LSTM else ["output_0", "output_1"]
    assert [o.name for o in result.session().get_outputs()] == names
    assert {row.case for row in result.table} >= {"batch=1", "time=1"}


class Stream(nn.Module):
    """A causal convolution over a stream that comes in pieces: what it keeps is the end of the piece before."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(3, 3, 3)
        self.register_buffer("tail", torch.zeros(1, 3, 2))
        self.seen: dict[str, Tensor] | None = None

    def forward(self, x: Tensor) -> Tensor:
        x = torch.cat([self.tail, x], -1)
        self.tail = x[..., -2:]
        y = self.conv(x)
        total = y.sum(-1) if self.seen is None else self.seen["total"] + y.sum(-1)
        self.seen = {"total": total}
        return y


class InPlace(nn.Module):
    """Writes into its buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(1, 3))
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:
        self.mean.mul_(0.9).add_(x.mean(0, keepdim=True) * 0.1)
        self.steps += 1
        return x - self.mean


class Outer(nn.Module):
    def __init__(self, stream: nn.Module) -> None:
        super().__init__()
        self.stream = stream

    def forward(self, x: Tensor) -> Tensor:
        return self.stream(x) * 2


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_what_modules_keep_goes_in_and_out(exporter: str) -> None:
    torch.manual_seed(0)
    model = Outer(Stream()).eval()
    result = export_compat(
        model, torch.randn(1, 3, 6), exporter=exporter, state=["stream.tail", "stream.seen"], dynamic={"x": {2: "time"}}
    )
    session = result.session()
    assert [i.name for i in session.get_inputs()] == ["x", "stream_tail", "stream_seen_total"]
    assert [o.name for o in session.get_outputs()] == ["output", "stream_tail_next", "stream_seen_total_next"]
    assert any("unset before the first call" in note for note in result.notes)
    assert not model.stream.tail.any()
    assert model.stream.seen is None

    pieces = [torch.randn(1, 3, length) for length in (4, 1, 7)]
    tail, total = torch.zeros(1, 3, 2).numpy(), torch.zeros(1, 3).numpy()
    for piece in pieces:
        with torch.no_grad():
            wanted = model(piece)
        feeds = {"x": piece.numpy(), "stream_tail": tail, "stream_seen_total": total}
        found, tail, total = session.run(None, feeds)
        torch.testing.assert_close(torch.from_numpy(found), wanted, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(torch.from_numpy(total), model.stream.seen["total"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_state_that_is_written_in_place(exporter: str) -> None:
    model = InPlace().eval()
    result = export_compat(
        model, torch.randn(2, 3), exporter=exporter, state=["mean", "steps"], dynamic={"x": {0: "batch"}}
    )
    session = result.session()
    mean, steps = model.mean.numpy().copy(), model.steps.numpy().copy()
    for count in (1, 5):
        x = torch.randn(count, 3)
        wanted = model(x)
        found, mean, steps = session.run(None, {"x": x.numpy(), "mean": mean, "steps": steps})
        torch.testing.assert_close(torch.from_numpy(found), wanted)
    assert steps == 2


@pytest.mark.parametrize(
    ("state", "found"),
    [
        ("stream.tial", "no attribute 'stream.tial'; near it: stream.tail"),
        ("stream.conv.weight", "is a parameter"),
        ("stream.training", "holds a bool without a tensor"),
    ],
)
def test_what_is_no_state_is_an_error(state: str, found: str) -> None:
    with pytest.raises(CompatError, match=found):
        export_compat(Outer(Stream()).eval(), torch.randn(1, 3, 6), state=[state])


class Difference(nn.Module):
    """Subtracts the frame before."""

    def __init__(self) -> None:
        super().__init__()
        self.before = torch.zeros(2, 3)

    def forward(self, x: Tensor) -> Tensor:
        difference, self.before = x - self.before, x
        return difference


def test_state_has_the_names_and_axes_that_were_given() -> None:
    result = export_compat(
        Difference().eval(),
        torch.randn(2, 3),
        state=["before"],
        input_names=["frame", "state"],
        output_names=["difference", "new_state"],
        dynamic={"before": {0: "rows"}, "frame": {0: "rows"}},
    )
    session = result.session()
    assert [i.name for i in session.get_inputs()] == ["frame", "state"]
    assert [o.name for o in session.get_outputs()] == ["difference", "new_state"]
    assert "rows=1" in {row.case for row in result.table}


def test_state_and_other_outputs() -> None:
    result = export_compat(
        Outer(Stream()).eval(),
        torch.randn(1, 3, 6),
        state=["stream.tail"],
        outputs=["stream.conv"],
        split=["stream.conv"],
    )
    assert [o.name for o in result.session().get_outputs()] == ["stream_conv", "stream_tail_next"]
    assert len(result.parts) == 2


def test_a_module_with_state_is_not_replaced() -> None:
    @rewrite(f"module:{__name__}.Stream", always=True, registry=None)
    def stateless(module: nn.Module) -> nn.Module:
        return nn.Conv1d(3, 3, 3)

    model = Outer(Stream()).eval()
    result = export_compat(model, torch.randn(1, 3, 6), state=["stream.tail"], rewrites=[stateless])
    (note,) = [note for note in result.declined if note.entry == "stateless"]
    assert "'tail' in it is asked for" in str(note)


def test_state_of_a_part_is_an_error() -> None:
    with pytest.raises(CompatError, match="name attributes of the whole model"):
        export_compat(Outer(Stream()).eval(), torch.randn(1, 3, 6), state=["stream.tail"], submodule="stream")
