"""Small models whose decisions have no equivalent in a file, each with what the refusal has to say."""

import string

import torch
from torch import nn

REFUSED: dict[str, tuple] = {}


def refused(message, dynamic=None, exporters=("torchscript", "dynamo")):
    """Registers a forward function with the message of its refusal."""

    def register(forward):
        model = forward() if isinstance(forward, type) else type(forward.__name__, (nn.Module,), {"forward": forward})()
        REFUSED[forward.__name__] = (model.eval(), message, dynamic, exporters)
        return forward

    return register


@refused(r"refused_programs.py:\d+: .*writes the attribute HOLDER.state; move that out of the branch")
def attribute_write(self, x):
    if x.sum() > 0:
        HOLDER.state = x
    return x


HOLDER = string.Formatter()


@refused(r"refused_programs.py:\d+: .*changes self.items; move that out")
class AttributeList(nn.Module):
    def __init__(self):
        super().__init__()
        self.items = []

    def forward(self, x):
        if x.sum() > 0:
            self.items.append(1)
        return x


@refused(r"refused_programs.py:\d+: .*is torch.float32 in one branch and torch.bool in the other")
def dtypes_differ(self, x):
    return x if x.sum() > 0 else x > 0


@refused(r"refused_programs.py:\d+: .*has the keys \['a'\] in one branch and \['b'\]")
def keys_differ(self, x):
    return {"a": x} if x.sum() > 0 else {"b": x}


@refused(r"refused_programs.py:\d+: .*deletes parts\['y'\]; move that out of the branch")
def item_deleted(self, x):
    parts = {"x": x, "y": x}
    if x.sum() > 0:
        del parts["y"]
    return parts["x"]


@refused(r"refused_programs.py:\d+: .*deletes COUNT; move that out of the branch")
def global_deleted(self, x):
    global COUNT
    if x.sum() > 99:
        del COUNT
    return x


COUNT = 0


@refused(r"refused_programs.py:\d+: .*binds names of an outer scope")
def global_written(self, x):
    if x.sum() > 0:
        global COUNT
        COUNT = 1
    return x


def rows(x):
    for row in x.unbind(0):
        if row.sum() > 0:
            yield row
        else:
            yield row * 2


@refused(r"refused_programs.py:\d+: .*it is a generator")
def generator(self, x):
    return torch.stack(list(rows(x)))


@refused(r"refused_programs.py:\d+: .*it is a generator, .* append the items to a list")
def generator_inside(self, x):
    def scaled():
        for row in x:
            if row.sum() > 0:
                yield row
            else:
                yield row * 2

    return torch.stack(list(scaled()))


@refused(r"refused_programs.py:\d+")
def list_index(self, x):
    return [x, x * 2, x * 3][int(x.sum() > 0)]


@refused(r"refused_programs.py:\d+")
def numpy_round_trip(self, x):
    return x * float(x.numpy().sum())


@refused(r"refused_programs.py:\d+")
def dictionary_lookup(self, x):
    return x * {True: 2.0, False: 3.0}[bool(x.sum() > 0)]


# Loops whose number of rounds depends on the inputs


@refused(
    r"refused_programs.py:\d+: how often this loop runs depends on the inputs, and .*writes the attribute", "batch"
)
def loop_writes_attribute(self, x):
    for row in x:
        self.last = row
    return x + self.last


@refused(r"refused_programs.py:\d+: how often .*'kind' is a str that changes in the loop", "batch")
def loop_changes_text(self, x):
    kind = "first"
    for row in x:
        x = x + row if kind == "first" else x - row
        kind = "later"
    return x


@refused(r"refused_programs.py:\d+", "batch")
class LoopOverLayers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(8))

    def forward(self, x):
        total = torch.zeros(4)
        for i in range(x.shape[0]):
            total = total + self.layers[i](x[i])
        return total


@refused(r"refused_programs.py:\d+: a function calls itself as often as the inputs decide; write it as a loop")
def recursion_without_an_end(self, x):
    return _grown(x)


def _grown(x):
    if x.sum() > 100:
        return x
    return _grown(x * 2)


@refused("match of a number that values decide; compare it with if instead")
def match_that_binds_a_name_which_is_read_behind_it(self, x):
    """Python binds the name before it asks the guard."""
    n = 3.0
    match x.max().item():
        case n if n > 50:
            y = x * 2
        case _:
            y = x
    return y + n


@refused(
    r"refused_programs.py:\d+: .append\(\) of a list whose length depends on the inputs; make it with a loop", "batch"
)
def starts_of_tiles(self, x):
    starts = list(range(0, x.shape[0], 2))
    if starts[-1] + 2 < x.shape[0] + 1:
        starts.append(x.shape[0] - 2)
    return torch.stack([x[i] for i in starts])


@refused(
    r"refused_programs.py:\d+: an item is put into a list whose length depends on the inputs; write to a tensor",
    "batch",
)
def last_start(self, x):
    starts = list(range(0, x.shape[0], 2))
    starts[-1] = x.shape[0] - 1
    return torch.stack([x[i] for i in starts])
