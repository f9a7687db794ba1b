"""LSTM, GRU and RNN: sequences of any length, packed sequences, projections.

While a model is exported, a PackedSequence holds the padded sequences (T, N, C) as its data and a `Lengths` in place of
the batch sizes, and each layer is one operator of this project's own; what computes on the data cell by cell goes on
working.

Math:   ONNX LSTM, GRU and RNN take the lengths as an input: beyond them the outputs are zeros, a sequence is read
        backwards from its own end, and the last states are those at its own end.
Source: https://onnx.ai/onnx/operators/onnx__LSTM.html; torch.nn.utils.rnn; https://arxiv.org/abs/1402.1128
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from torch_onnx_compat import Declaration, Exactness, Ops, Value, decline, decomposition, rewrite, symbolic
from torch_onnx_compat.errors import UnsupportedError

BITWISE = Declaration(needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
ROUNDED = Declaration(needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
UNROLLED = Declaration(needed_on=("dynamo",), exactness=Exactness.ROUNDING)
"""Where torch.export unrolls the steps, and fixes their number."""
UNTIL_2_15 = Declaration(**UNROLLED, fixed_in="2.15")
"""The same of layers that torch 2.15 no longer unrolls."""

_LAYERS: dict[str, Any] = {"LSTM": torch.lstm, "GRU": torch.gru, "Tanh": torch.rnn_tanh, "Relu": torch.rnn_relu}


# Packed sequences


class Lengths:
    """Stands in a PackedSequence for the batch sizes.

    Args:
        lengths: Of the sequences, (N,), int64.
        batch: N, as a size of the padded sequences.
        known: The lengths as numbers, where they are.
    """

    device = torch.device("cpu")

    def __init__(self, lengths: Tensor, batch: Any, known: Sequence[int] | None = None) -> None:
        self.lengths, self.known = lengths, known
        self._batch = batch
        self.blank: Tensor | None = None
        """The data that are known to be zeros beyond the lengths."""

    def __getitem__(self, step: int) -> Any:
        """How many sequences have this step; layers ask only for the first, which all have."""
        if step:
            raise UnsupportedError(
                "the batch sizes of a packed sequence cannot be read while exporting; take the lengths."
            )
        return self._batch

    @classmethod
    def __torch_function__(cls, func: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Makes torch hand calls with such an argument to the decompositions, which leave none of them."""
        return NotImplemented

    def beyond(self, data: Tensor) -> Tensor:
        """True where the padded data (T, N, ...) are padding."""
        mask = torch.arange(data.shape[0], device=data.device).unsqueeze(-1) >= self.lengths.to(data.device)
        return mask.reshape(*mask.shape, *[1] * (data.dim() - 2))


# Operators


@torch.library.custom_op(
    "torch_onnx_compat::recurrent",
    mutates_args=(),
    schema="(Tensor x, Tensor? lengths, Tensor[] weights, Tensor[] state, str kind) -> (Tensor, Tensor, Tensor)",
)
def recurrent_operator(
    x: Tensor, lengths: Tensor | None, weights: Sequence[Tensor], state: Sequence[Tensor], kind: str
) -> tuple[Tensor, Tensor, Tensor]:
    """One layer in one or both directions.

    Args:
        x: Sequences (T, N, C).
        lengths: Of the sequences, (N,); T where None.
        weights: For each direction its weights, and its biases if there are any, as torch has them.
        state: Initial h (D, N, H), and c for an LSTM.
        kind: LSTM, GRU, or a plain layer's activation, Tanh or Relu.

    Returns:
        Outputs (T, N, D H), last h (D, N, H), and last c; without a c it is empty.
    """
    directions = state[0].shape[0]
    rest = (list(weights), len(weights) == 4 * directions, 1, 0.0, False, directions == 2)
    hidden: Any = tuple(state) if kind == "LSTM" else state[0]
    if lengths is None:
        output, *last = _LAYERS[kind](x, hidden, *rest, False)
    else:
        order = lengths.argsort(descending=True)
        back = order.argsort()
        hidden = tuple(s[:, order] for s in state) if kind == "LSTM" else state[0][:, order]
        data, sizes = torch._pack_padded_sequence(x[:, order], lengths[order].cpu(), False)
        data, *last = _LAYERS[kind](data, sizes, hidden, *rest)
        output = torch._pad_packed_sequence(data, sizes, False, 0.0, x.shape[0])[0][:, back]
        last = [s[:, back] for s in last]
    return output, last[0], last[1] if kind == "LSTM" else x.new_empty(0)


@recurrent_operator.register_fake
def _(
    x: Tensor, lengths: Tensor | None, weights: Sequence[Tensor], state: Sequence[Tensor], kind: str
) -> tuple[Tensor, Tensor, Tensor]:
    directions, batch, hidden = state[0].shape
    output = x.new_empty((x.shape[0], batch, directions * hidden))
    last = [torch.empty_like(s) for s in state]
    return output, last[0], last[1] if kind == "LSTM" else x.new_empty(0)


@torch.library.custom_op("torch_onnx_compat::until_longest", mutates_args=())
def until_longest_operator(x: Tensor, lengths: Tensor) -> Tensor:
    """The steps of padded sequences (T, N, ...) that one of them has."""
    return x[: int(lengths.max())].clone()


@until_longest_operator.register_fake
def _(x: Tensor, lengths: Tensor) -> Tensor:
    return x.new_empty((torch.library.get_ctx().new_dynamic_size(min=1), *x.shape[1:]))


@torch.library.custom_op(
    "torch_onnx_compat::with_steps",
    mutates_args=(),
    schema="(Tensor x, SymInt steps, Tensor? varying, float value) -> Tensor",
)
def with_steps_operator(x: Tensor, steps: int, varying: Tensor | None, value: float) -> Tensor:
    """Padded sequences (T, N, ...) with another T: cut off, or filled up with a value.

    Args:
        x: The sequences.
        steps: The other T.
        varying: The same as a tensor where it is not fixed: a trace records a size in no other way.
        value: What is put at the end.
    """
    return torch.cat((x, x.new_full((max(steps - x.shape[0], 0), *x.shape[1:]), value)))[:steps].clone()


@with_steps_operator.register_fake
def _(x: Tensor, steps: int, varying: Tensor | None, value: float) -> Tensor:
    return x.new_empty((steps, *x.shape[1:]))


# Calls of torch.lstm, gru, rnn_tanh and rnn_relu

Layer = list[Sequence[Tensor]]
"""Weights of one layer, by direction: of the input, of the state, two biases or none, a projection or none."""


def run_call(kind: str, args: Sequence[Any], packed: bool) -> Any:
    """The result of a call; NotImplemented if it is not of the kind that is asked for.

    Args:
        kind: As for `recurrent_operator`.
        args: Of the call.
        packed: Whether packed sequences are meant, or padded ones.

    Raises:
        Declined: There is dropout between the layers, in training mode.
    """
    if not isinstance(args[0], Tensor) or isinstance(args[1], Lengths) != packed or (not packed and len(args) != 9):
        return NotImplemented
    x, lengths, rest = (args[0], args[1], args[2:]) if packed else (args[0], None, args[1:])
    state, weights, _, num_layers, dropout, train, bidirectional = rest[:7]
    if not isinstance(weights, (list, tuple)):  # batch sizes of torch's own packing
        return NotImplemented
    if dropout and train:
        decline(f"dropout must be 0 in training mode, got {dropout}")
    batch_first = not packed and rest[7]
    states = list(state) if kind == "LSTM" else [state]
    layers = split_weights(weights, num_layers, bidirectional)
    output, *last = run_layers(kind, x.transpose(0, 1) if batch_first else x, lengths, states, layers)
    return output.transpose(0, 1) if batch_first else output, *last


def has_projection(args: Sequence[Any]) -> bool:
    """Whether a call of torch.lstm with padded sequences has weights of projections."""
    if len(args) != 9 or not isinstance(args[1], (list, tuple)):  # batch sizes of packed sequences
        return False
    _, _, weights, _, num_layers, _, _, bidirectional, _ = args
    return _is_projected(split_weights(weights, num_layers, bidirectional)[0])


def split_weights(weights: Sequence[Tensor], num_layers: int, bidirectional: bool) -> list[Layer]:
    """The weights that torch.lstm and its like take, by layer and direction."""
    directions = 2 if bidirectional else 1
    each = len(weights) // (num_layers * directions)
    by_direction = [weights[i : i + each] for i in range(0, len(weights), each)]
    return [by_direction[i : i + directions] for i in range(0, len(by_direction), directions)]


def _is_projected(layer: Layer) -> bool:
    return len(layer[0]) % 2 == 1


def run_layers(
    kind: str, x: Tensor, lengths: Lengths | None, state: Sequence[Tensor], layers: Sequence[Layer]
) -> tuple[Tensor, ...]:
    """All layers, over (T, N, C): the outputs (T, N, D H), then the last states (L D, N, H).

    Args:
        kind: As for `recurrent_operator`.
        x: Padded sequences.
        lengths: Of the sequences; all have T steps where None.
        state: Initial states (L D, N, H).
        layers: The weights of L layers of D directions.
    """
    steps = lengths.lengths if lengths is not None else None
    directions, lasts = len(layers[0]), []
    for number, layer in enumerate(layers):
        first = number * directions
        own = list(state) if len(layers) == 1 else [s[first : first + directions] for s in state]
        if _is_projected(layer):
            x, *last = _run_projected(x, steps, own, layer)
        else:
            x, *last = recurrent_operator(x, steps, [weight for weights in layer for weight in weights], own, kind)
        lasts.append(last[: len(state)])
    if lengths is not None:
        lengths.blank = x
    joined = lasts[0] if len(layers) == 1 else [torch.cat(parts) for parts in zip(*lasts, strict=True)]
    return x, *joined


def _run_projected(
    x: Tensor, lengths: Tensor | None, state: Sequence[Tensor], layer: Layer
) -> tuple[Tensor, Tensor, Tensor]:
    """One layer of an LSTM with projections: the outputs, last h and last c.

    It is an LSTM without: h = P m makes R h = (R P) m. The initial h, which is no P m in general, comes as more cells
    of the input at each sequence's first step.
    """
    step = torch.arange(x.shape[0], device=x.device).unsqueeze(-1)
    last = x.shape[0] - 1 if lengths is None else lengths - 1
    plain, inputs, zero = [], [x], torch.zeros((), dtype=x.dtype, device=x.device)
    for i, (of_input, of_state, *biases, projection) in enumerate(layer):
        begins = step == (last if i else torch.zeros_like(step[0]))
        inputs.append(torch.where(begins.unsqueeze(-1), state[0][i], zero))
        blanks = torch.zeros_like(of_state)
        of_initial = [of_state if i == j else blanks for j in range(len(layer))]
        plain += [torch.cat((of_input, *of_initial), 1), of_state @ projection, *biases]
    memory = torch.zeros_like(state[1])
    output, hidden, cell = recurrent_operator(torch.cat(inputs, -1), lengths, plain, [memory, state[1]], "LSTM")
    size = state[1].shape[-1]
    transposed = [weights[-1].t() for weights in layer]
    outputs = [output[..., i * size : (i + 1) * size] @ p for i, p in enumerate(transposed)]
    hiddens = [hidden[i] @ p for i, p in enumerate(transposed)]
    if len(layer) == 1:
        return outputs[0], hiddens[0].unsqueeze(0), cell
    return torch.cat(outputs, -1), torch.stack(hiddens), cell


def pad_beyond(data: Tensor, lengths: Lengths, value: float, total: Any) -> Tensor:
    """Padded sequences (T, N, ...) with a value beyond the lengths.

    Args:
        data: Those of the packed sequence.
        lengths: Of the sequences.
        value: What is put beyond them.
        total: How many steps the result has; None for those of the longest sequence.
    """
    if value or data is not lengths.blank:
        fill = torch.full((), value, dtype=data.dtype, device=data.device)
        data = torch.where(lengths.beyond(data), fill, data)
    if total is None:
        return until_longest_operator(data, lengths.lengths) if lengths.known is None else data[: max(lengths.known)]
    difference = total - data.shape[0]
    if isinstance(difference, torch.SymInt) and difference.node.expr == 0:
        return data
    varying = None if type(total) is int else torch.full((), total, dtype=torch.int64)
    return with_steps_operator(data, total, varying, float(value))


# The operators in ONNX

GATES = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2)}
"""Where ONNX's gates stand in torch: those of an LSTM, i o f g, in i f g o; those of a GRU, z r n, in r z n."""


@symbolic("torch_onnx_compat::recurrent", **ROUNDED)
def recurrent(
    op: Ops, x: Value, lengths: Value | None, weights: list[Value], state: list[Value], kind: str
) -> tuple[Value, Value, Value]:
    """One recurrent layer in one or both directions.

    Declines: weights whose sizes are not fixed.

    Math: the n of a GRU is made from the state after its bias was added: linear_before_reset.
    Schema: recurrent(Tensor x, Tensor? lengths, Tensor[] weights, Tensor[] state, str kind) -> (Tensor, Tensor, Tensor)
    """
    shapes = [op.shape(weight) for weight in weights]
    if shapes[1] is None or shapes[1][1] is None:
        decline("the weights' sizes must be fixed")
    hidden = shapes[1][1]
    # A direction has its second weight of the same width as the first one's; a bias has no second axis.
    each = 4 if len(weights) > 2 and shapes[2] is not None and len(shapes[2]) == 1 else 2
    directions = len(weights) // each
    gates = GATES.get(kind, (0,))
    rows = [gate * hidden + row for gate in gates for row in range(hidden)]

    def stack_weights(numbers: list[int], shape: list[int]) -> Value:
        parts = [weights[i * each + n] for i in range(directions) for n in numbers]
        joined = parts[0] if len(parts) == 1 else op.Concat(*parts, axis=0)
        order = [part * len(rows) + row for part in range(len(parts)) for row in rows]
        ordered = op.Gather(joined, order, axis=0) if len(gates) > 1 else joined
        return op.Reshape(ordered, [directions, *shape])

    bias = stack_weights([2, 3], [-1]) if each == 4 else None
    steps = None if lengths is None else op.cast(lengths, torch.int32)
    attributes: dict[str, Any] = {"hidden_size": hidden, "direction": "bidirectional" if directions == 2 else "forward"}
    if kind == "GRU":
        attributes["linear_before_reset"] = 1
    if kind in ("Tanh", "Relu"):
        attributes["activations"] = [kind] * directions
    layer = op.node(
        kind if kind in GATES else "RNN",
        [x, stack_weights([0], [len(rows), -1]), stack_weights([1], [len(rows), hidden]), bias, steps, *state],
        attributes,
        3 if kind == "LSTM" else 2,
    )
    output, *last = layer
    cell = last[1] if kind == "LSTM" else op.constant([], op.dtype(x))
    if directions == 1:
        return op.Squeeze(output, [1]), last[0], cell
    return op.Reshape(op.Transpose(output, perm=[0, 2, 1, 3]), [0, 0, -1]), last[0], cell


@symbolic("torch_onnx_compat::until_longest", **BITWISE)
def until_longest(op: Ops, x: Value, lengths: Value) -> Value:
    """The steps of padded sequences (T, N, ...) that one of them has.

    Schema: until_longest(Tensor x, Tensor lengths) -> Tensor
    Source: https://onnx.ai/onnx/operators/onnx__Slice.html
    """
    longest = op.ReduceMax(lengths, keepdims=1)
    return op.Slice(x, [0], longest, [0])


@symbolic("torch_onnx_compat::with_steps", **BITWISE)
def with_steps(op: Ops, x: Value, steps: Value, varying: Value | None, value: float) -> Value:
    """Padded sequences (T, N, ...) with another number of steps.

    Declines: sequences of which not even the number of axes is known.

    Schema: with_steps(Tensor x, SymInt steps, Tensor? varying, float value) -> Tensor
    Source: https://onnx.ai/onnx/operators/onnx__Pad.html
    """
    shape = op.shape(x)
    if shape is None:
        decline("the number of axes must be known")
    number, rest = op.number(steps) if varying is None else None, len(shape) - 1
    if number is not None and number == shape[0]:
        return op.Identity(x)
    fill = op.constant(value, op.dtype(x))
    if number is not None and shape[0] is not None:
        return op.Pad(x, [0] * len(shape) + [int(number) - shape[0]] + [0] * rest, fill)
    have = op.Gather(op.Shape(x), op.constant([0], torch.int64), axis=0)
    wanted = op.constant([number], torch.int64) if varying is None else op.Reshape(varying, [1])
    more = op.Sub(wanted, have)
    return op.Pad(x, op.Concat([0] * len(shape), more, [0] * rest, axis=0), fill)


# The layers


@decomposition((torch.lstm, torch.gru, torch.rnn_tanh, torch.rnn_relu), **ROUNDED)
def float64_recurrent(*args: Any) -> Any:
    """Names recurrent layers of float64 as what onnxruntime does not run, and says what to do.

    Declines: always; the file passes with verify=False, for an engine that does run them.

    Math: onnxruntime computes the three operators in float32, and LSTM and GRU in float16 too.
    Source: https://github.com/microsoft/onnxruntime/blob/main/docs/OperatorKernels.md
    """
    if not isinstance(args[0], Tensor) or args[0].dtype != torch.float64:
        return NotImplemented
    decline(
        "onnxruntime runs no recurrent layer in float64; cast the layer and what it gets to float32, as in "
        "layer.float() and x.float()"
    )


@decomposition(torch.lstm, **UNTIL_2_15)
def lstm_of_any_length(*args: Any) -> Any:
    """LSTM, one node for each layer.

    Declines: dropout between the layers in training mode.
    """
    return NotImplemented if has_projection(args) else run_call("LSTM", args, packed=False)


@decomposition(torch.lstm, **ROUNDED)
def lstm_of_packed(*args: Any) -> Any:
    """LSTM over packed sequences.

    Declines: dropout between the layers in training mode.
    """
    return run_call("LSTM", args, packed=True)


@decomposition(torch.lstm, **ROUNDED)
def lstm_projection_to_matmul(*args: Any) -> Any:
    """LSTM with projections, proj_size > 0; TorchScript refuses it, stock dynamo writes a file that does not run.

    Declines: dropout between the layers in training mode.
    """
    return run_call("LSTM", args, packed=False) if has_projection(args) else NotImplemented


@decomposition(torch.gru, **UNTIL_2_15)
def gru_of_any_length(*args: Any) -> Any:
    """GRU, one node for each layer.

    Declines: dropout between the layers in training mode.
    """
    return run_call("GRU", args, packed=False)


@decomposition(torch.gru, **ROUNDED)
def gru_of_packed(*args: Any) -> Any:
    """GRU over packed sequences.

    Declines: dropout between the layers in training mode.
    """
    return run_call("GRU", args, packed=True)


@decomposition(torch.rnn_tanh, **UNROLLED)
def rnn_tanh_of_any_length(*args: Any) -> Any:
    """Plain recurrent layers with tanh, one node for each.

    Declines: dropout between the layers in training mode.
    """
    return run_call("Tanh", args, packed=False)


@decomposition(torch.rnn_tanh, **ROUNDED)
def rnn_tanh_of_packed(*args: Any) -> Any:
    """Plain recurrent layers with tanh over packed sequences.

    Declines: dropout between the layers in training mode.
    """
    return run_call("Tanh", args, packed=True)


@decomposition(torch.rnn_relu, **UNROLLED)
def rnn_relu_of_any_length(*args: Any) -> Any:
    """Plain recurrent layers with relu, one node for each.

    Declines: dropout between the layers in training mode.
    """
    return run_call("Relu", args, packed=False)


@decomposition(torch.rnn_relu, **ROUNDED)
def rnn_relu_of_packed(*args: Any) -> Any:
    """Plain recurrent layers with relu over packed sequences.

    Declines: dropout between the layers in training mode.
    """
    return run_call("Relu", args, packed=True)


# Packing. torch.export cannot capture it; TorchScript loses padding_value and total_length, or freezes the lengths.


@rewrite("torch.nn.utils.rnn.pack_padded_sequence", **BITWISE)
def pack_padded_sequence_to_padded(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Packs sequences (T, N, ...), or (N, T, ...), for a recurrent layer or pad_packed_sequence."""
    data = input.transpose(0, 1) if batch_first else input
    if isinstance(lengths, Tensor):
        whole = lengths if lengths.dtype == torch.int64 else lengths.to(torch.int64)
        return PackedSequence(data, Lengths(whole, data.shape[1]))  # type: ignore[arg-type]
    known = [int(length) for length in lengths]
    table = torch.tensor(known, dtype=torch.int64, device=input.device)
    return PackedSequence(data, Lengths(table, data.shape[1], known))  # type: ignore[arg-type]


@rewrite("torch.nn.utils.rnn.pad_packed_sequence", **BITWISE)
def pad_packed_sequence_to_mask(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: Any = None
) -> tuple[Tensor, Tensor]:
    """Padded sequences (T, N, ...), or (N, T, ...), and their lengths.

    Declines: sequences that pack_padded_sequence did not pack.
    """
    lengths: Any = sequence.batch_sizes
    if not isinstance(lengths, Lengths):
        decline("the sequences must have been packed by pack_padded_sequence")
    output = pad_beyond(sequence.data, lengths, padding_value, total_length)
    return output.transpose(0, 1) if batch_first else output, lengths.lengths


@rewrite("torch.nn.modules.rnn.RNNBase.check_forward_args", **BITWISE)
def packed_sequence_check(self: nn.Module, input: Tensor, hidden: Any, batch_sizes: Any) -> None:
    """Lets a layer take padded sequences as a packed one's data.

    Torch's check wants the initial state's size to be the first batch size, a Python number, and the packed data to
    have 2 axes; here they have 3, since they are padded.
    """
    if not isinstance(batch_sizes, Lengths):
        return NotImplemented
