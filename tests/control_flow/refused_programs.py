"""Small models whose decisions have no equivalent in a file, each with what the refusal has to say."""

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


@refused(r"refused_programs.py:\d+: .*writes the attribute self.state; move that out of the branch")
def attribute_write(self, x):
    if x.sum() > 0:
        self.state = x
    return x


@refused(r"refused_programs.py:\d+: .*changes self.items; move that out")
class AttributeList(nn.Module):
    def __init__(self):
        super().__init__()
        self.items = []

    def forward(self, x):
        if x.sum() > 0:
            self.items.append(1)
        return x


@refused(r"refused_programs.py:\d+: .*is a Tensor in one branch and a NoneType in the other")
def none_or_tensor(self, x):
    mask = None
    if x.sum() > 0:
        mask = x > 0
    return x if mask is None else x * mask


@refused(r"refused_programs.py:\d+: .*is torch.float32 in one branch and torch.bool in the other")
def dtypes_differ(self, x):
    return x if x.sum() > 0 else x > 0


@refused(r"refused_programs.py:\d+: .*has the keys \['a'\] in one branch and \['b'\]")
def keys_differ(self, x):
    return {"a": x} if x.sum() > 0 else {"b": x}


@refused(r"refused_programs.py:\d+: .*has 2 items in one branch and 1 in the other")
def lengths_differ(self, x):
    parts = [x]
    if x.sum() > 0:
        parts.append(x)
    return torch.cat(parts)


@refused(r"refused_programs.py:\d+: .*is one str or another, which is no tensor")
def text_result(self, x):
    mode = "nearest" if x.sum() > 0 else "bilinear"
    return nn.functional.interpolate(x[None, None], scale_factor=2, mode=mode)


@refused(r"refused_programs.py:\d+: .*is one Linear or another, which is no tensor")
class ModuleChosen(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        layer = self.a if x.sum() > 0 else self.b
        return layer(x)


@refused(r"refused_programs.py:\d+: a while loop depends on a tensor and has no bound")
def while_without_bound(self, x):
    while x.norm() < 1e30:
        x = x * 1.5
    return x


@refused(r"refused_programs.py:\d+: .*writes in place through a view", exporters=("torchscript",))
def write_through_view(self, x):
    y = x * 1
    first = y[0]
    if x.sum() > 0:
        first += 1
    return y


@refused(r"refused_programs.py:\d+: .*writes in place through a view", exporters=("torchscript",))
def write_under_view(self, x):
    y = x * 1
    first = y[0]
    if x.sum() > 0:
        y.add_(1)
    return first + y


@refused(r"refused_programs.py:\d+")
def comprehension_filter(self, x):
    return torch.stack([row for row in x.unbind(0) if row.sum() > 0])


@refused(r"refused_programs.py:\d+: .*deletes a name")
def name_deleted(self, x):
    y = x
    if x.sum() > 0:
        del y
    return x


COUNT = 0


@refused(r"refused_programs.py:\d+: .*binds names of an outer scope")
def global_written(self, x):
    if x.sum() > 0:
        global COUNT
        COUNT = 1
    return x


@refused(r"refused_programs.py:\d+: .*the loop in line \d+ has an else clause")
def loop_else(self, x):
    for i in range(3):
        if x[i].sum() > 0:
            break
    else:
        x = x + 1
    return x


@refused(r"refused_programs.py:\d+: .*nested decisions in line \d+ leave the loop")
def nested_break(self, x):
    for i in range(3):
        if x.sum() > 0:
            x = x - 1
            if x.mean() > i:
                break
            x = x * 2
    return x


@refused(r"refused_programs.py:\d+: .*leaves a with or try block")
def return_in_with(self, x):
    with torch.no_grad():
        if x.sum() > 0:
            return x
    return x + 1


def rows(x):
    for row in x.unbind(0):
        if row.sum() > 0:
            yield row
        else:
            yield row * 2


@refused(r"refused_programs.py:\d+: .*it is a generator")
def generator(self, x):
    return torch.stack(list(rows(x)))


@refused(r"refused_programs.py:\d+")
def list_index(self, x):
    return [x, x * 2, x * 3][int(x.sum() > 0)]


@refused(r"refused_programs.py:\d+")
def numpy_round_trip(self, x):
    return x * float(x.numpy().sum())


@refused(r"refused_programs.py:\d+|came out fixed at 3", "batch")
def loop_over_size(self, x):
    total = x[0]
    for i in range(1, x.shape[0]):
        total = total * 0.5 + x[i]
    return total


@refused(r"refused_programs.py:\d+")
def range_of_value(self, x):
    for _ in range(int(x.abs().sum())):
        x = x + 1
    return x


@refused(r"refused_programs.py:\d+")
def dictionary_lookup(self, x):
    return x * {True: 2.0, False: 3.0}[bool(x.sum() > 0)]
