"""Lists of varying length that are read by number are right at other sizes and values."""

import math

import onnxruntime
import pytest
import torch

from torch_onnx_compat import CompatError, export_compat


def nested(x):
    return x * 2 if x.tolist()[0][0] > 0.5 else x * 3


def last(x):
    rows = x.tolist()
    return x * rows[1][2] if rows[-1][0] > 0.5 else x * 3


def computed(x):
    factor = 0.1 * x.tolist()[0][1]
    return x * factor if factor > 0.04 else x / (factor + 1)


def flat(x):
    return x * 2 if x.flatten().tolist()[0] > 0.5 else x * 3


def rows_of_tensors(x):
    rows = x.unbind(0)
    return x * 2 if rows[1].sum() > 4 else x * 3 - rows[-1]


def counted(x):
    rows = x.tolist()
    if len(rows) > 4:
        return x * rows[1][0]
    return x


@pytest.mark.parametrize("model", [nested, last, computed, flat, rows_of_tensors, counted])
def test_items_are_read_by_number(model, exporter, tmp_path):
    path = tmp_path / "model.onnx"
    export_compat(model, torch.rand(3, 8) * 0.4, path, dynamic="batch", exporter=exporter)
    session = onnxruntime.InferenceSession(path)
    for x in (torch.rand(2, 8), torch.rand(5, 8) + 0.6, torch.rand(4, 8), torch.rand(9, 8), torch.rand(20, 8) * 50):
        (found,) = session.run(None, {"x": x.numpy()})
        torch.testing.assert_close(torch.from_numpy(found), model(x))


def sliced(x):
    return x * 2 if sum(row[0] for row in x.tolist()[1:]) > 1 else x * 3


def test_a_slice_is_refused(exporter, tmp_path):
    with pytest.raises(CompatError, match="a slice is taken of a list whose length depends on the inputs"):
        export_compat(sliced, torch.rand(3, 8), tmp_path / "model.onnx", dynamic="batch", exporter=exporter)


# Lists of tensors of different sizes

pad = torch.nn.utils.rnn.pad_sequence


def pieces_of(x):
    return [row[keep] for row, keep in zip(x, x[:, :, 0] > 0, strict=True)]


def padded(x):
    return pad(pieces_of(x))


def padded_on_the_left(x):
    return pad(pieces_of(x), batch_first=True, padding_value=-2.5, padding_side="left")


def padded_numbers(x):
    return pad([(piece * 10).long() for piece in pieces_of(x)], True, -1)


def padded_with_others(x):
    return pad([x[0, :2], *pieces_of(x), x[0, :3]], True)


def lengths(x):
    found = pieces_of(x)
    return torch.tensor([piece.shape[0] for piece in found]), torch.tensor(len(found))


def read_by_number(x):
    found = pieces_of(x)
    return found[0] * 2, found[-1] + 1


def gone_through_again(x):
    out = []
    for number, piece in enumerate(pieces_of(x)):
        out.append(piece[piece[:, 1] > 0] * number)
    return torch.cat(out), torch.stack([piece.sum(0) for piece in out])


def joined_on_the_second_axis(x):
    return torch.cat([piece.T for piece in pieces_of(x)], 1)


def written_by_number(x):
    found = pieces_of(x)
    before = torch.cat(found)
    found[0].mul_(2)
    return before, torch.cat(found), found[0]


def stacked_of_one_size(x):
    return torch.stack([row[row[:, 0] > -100] for row in x])


def filled_by_hand(x):
    found = pieces_of(x)
    longest = max(piece.shape[0] for piece in found)
    return torch.stack([torch.nn.functional.pad(p, (0, 0, 0, longest - p.shape[0])) for p in found])


LISTS = [
    *(padded, padded_on_the_left, padded_numbers, padded_with_others, lengths, read_by_number, gone_through_again),
    *(joined_on_the_second_axis, written_by_number, stacked_of_one_size, filled_by_hand),
]


@pytest.mark.parametrize("model", LISTS)
def test_tensors_of_different_sizes(model, tmp_path):
    """Through TorchScript, whose loops can append them."""
    path = tmp_path / "model.onnx"
    torch.manual_seed(0)
    dynamic = {"x": {0: "batch", 1: "length"}}
    export_compat(model, torch.randn(2, 8, 4), path, dynamic=dynamic, exporter="torchscript")
    session = onnxruntime.InferenceSession(path)
    for x in (torch.randn(1, 5, 4), torch.randn(5, 11, 4), torch.randn(3, 8, 4).abs(), -torch.randn(2, 3, 4).abs()):
        wanted = model(x)
        for found, expected in zip(
            session.run(None, {"x": x.numpy()}), wanted if isinstance(wanted, tuple) else (wanted,), strict=True
        ):
            torch.testing.assert_close(torch.from_numpy(found), expected)


# One piece at the example, several elsewhere, of which the last is shorter


def split_in_pieces(x):
    return torch.cat([piece.flip(0) for piece in x.split(16)])


def sliced_in_pieces(x):
    out = []
    for start in range(0, x.shape[0], 16):
        out.append(x[start : start + 16].flip(0))
    return torch.cat(out)


def as_many_chunks_as_needed(x):
    return torch.cat([piece.flip(0) for piece in x.chunk(math.ceil(x.shape[0] / 16), 0)])


def floor_chunks(x):
    return torch.cat([piece.flip(0) for piece in torch.chunk(x, max(x.shape[0] // 16, 1))])


@pytest.mark.parametrize("model", [split_in_pieces, sliced_in_pieces, as_many_chunks_as_needed, floor_chunks])
def test_the_example_has_one_piece(model, tmp_path):
    path = tmp_path / "model.onnx"
    export_compat(model, torch.randn(2, 4), path, dynamic="batch", exporter="torchscript")
    session = onnxruntime.InferenceSession(path)
    for count in (1, 16, 17, 31, 32, 33, 100):
        x = torch.randn(count, 4)
        (found,) = session.run(None, {"x": x.numpy()})
        torch.testing.assert_close(torch.from_numpy(found), model(x))


# Writes to items in branches of a loop


def refined(x):
    """Points of a heat map, moved a quarter to the larger neighbour: pose estimation's last step."""
    points = x.flatten(2).argmax(2).float()
    for number in range(x.shape[0]):
        for channel in range(2):
            place = int(points[number, channel])
            if 0 < place < 11:
                row = x[number, channel].flatten()
                points[number, channel] += (row[place + 1] - row[place - 1]).sign() * 0.25
    return points


def test_items_are_written_in_branches_of_a_loop(tmp_path):
    """Through TorchScript; torch.export has no number that values make as an index."""
    path = tmp_path / "model.onnx"
    export_compat(refined, torch.randn(2, 2, 3, 4), path, dynamic="batch", exporter="torchscript")
    session = onnxruntime.InferenceSession(path)
    for count in (1, 3, 7):
        x = torch.randn(count, 2, 3, 4)
        (found,) = session.run(None, {"x": x.numpy()})
        torch.testing.assert_close(torch.from_numpy(found), refined(x))
