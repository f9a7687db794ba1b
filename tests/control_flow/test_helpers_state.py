"""What a helper changes in a branch: variables and attributes of functions, namespaces, counters, queues, sources.

Where only the second of two decisions is taken, what the first one's branch has changed must not be there.
"""

import array
import contextvars
import itertools
import os
import queue
import random
import types
import weakref
from collections import OrderedDict, UserList

import numpy as np
import pytest
import torch

from torch_onnx_compat import CompatError, export_compat


def nonlocal_in_a_helper(x):
    count = 0

    def scaled(column):
        nonlocal count
        count += 1
        return column * count

    a = scaled(x[:, 0]) if x[:, 0].max() > 50 else x[:, 0]
    b = scaled(x[:, 1]) if x[:, 1].max() > 50 else x[:, 1]
    return a, b


def nonlocal_that_the_branch_reads(x):
    count = 0

    def next_number():
        nonlocal count
        count += 1
        return count

    a, b = x[:, 0], x[:, 1]
    if a.max() > 50:
        a = a * next_number() + count
    if b.max() > 50:
        b = b * next_number() + count
    return a, b


def short_circuit(x):
    count = 0

    def hit():
        nonlocal count
        count += 1
        return count < 2

    a, b = x[:, 0], x[:, 1]
    if a.max() > 50 and hit():
        a = a * 0
    if b.max() > 50 and hit():
        b = b * 0
    return a, b


def attribute_of_a_function(x):
    def scaled(column):
        scaled.count += 1
        return column * scaled.count

    scaled.count = 0
    a = scaled(x[:, 0]) if x[:, 0].max() > 50 else x[:, 0]
    return a, scaled(x[:, 1]) if x[:, 1].max() > 50 else x[:, 1]


def order_of_a_table(x):
    table = OrderedDict(a=x[:, 0], b=x[:, 1])
    if x.max() > 50:
        table.move_to_end("a")
    return next(iter(table.values())), x[:, 1]


def of_an_object(make, step):
    def forward(x):
        kept = make()
        a, b = x[:, 0], x[:, 1]
        if a.max() > 50:
            a = a * step(kept)
        if b.max() > 50:
            b = b * step(kept)
        return a, b

    return forward


def count_in(space):
    space.n += 1
    return space.n


def filled(line):
    for number in (2, 3, 4):
        line.put(number)
    return line


def counted_up(memory):
    memory[0] += 1
    return memory[0]


LEVEL = contextvars.ContextVar("level", default=1)

steps = 1


def count_in_globals(_):
    globals()["steps"] = globals()["steps"] + 1
    return steps


def start_in_globals():
    globals()["steps"] = 1


def count_in_environment(_):
    os.environ["STEPS"] = str(int(os.environ["STEPS"]) + 1)
    return int(os.environ["STEPS"])


HELD = UserList()


def count_weakly(table):
    table[len(table)] = HELD
    return len(table)


REFUSED = {
    "globals by text": of_an_object(start_in_globals, count_in_globals),
    "weak references": of_an_object(weakref.WeakValueDictionary, count_weakly),
    "environment": of_an_object(lambda: os.environ.update(STEPS="1"), count_in_environment),
    "nonlocal": nonlocal_in_a_helper,
    "nonlocal, read": nonlocal_that_the_branch_reads,
    "and": short_circuit,
    "function": attribute_of_a_function,
    "order": order_of_a_table,
    "count": of_an_object(lambda: itertools.count(2), next),
    "random": of_an_object(lambda: random.Random(3), random.Random.random),
    "array": of_an_object(lambda: array.array("i", (1, 2, 3)), array.array.pop),
    "random numbers of a module": of_an_object(lambda: random.seed(3), lambda _: random.random()),
    "random numbers of numpy": of_an_object(lambda: np.random.default_rng(3), lambda source: float(source.random())),
    "numpy's own random numbers": of_an_object(lambda: np.random.seed(3), lambda _: float(np.random.rand())),
    "queue": of_an_object(lambda: filled(queue.Queue()), queue.Queue.get),
    "simple queue": of_an_object(lambda: filled(queue.SimpleQueue()), lambda line: line.get()),
    "list of a user": of_an_object(lambda: UserList((2, 3, 4)), UserList.pop),
    "memory": of_an_object(lambda: memoryview(bytearray((2, 3))), counted_up),
    "tee": of_an_object(lambda: itertools.tee((2, 3, 4))[0], next),
    "variable of a context": of_an_object(lambda: LEVEL.set(1), lambda _: LEVEL.set(LEVEL.get() + 1) and LEVEL.get()),
    "method": of_an_object(lambda: iter(range(2, 9)).__next__, lambda step: step()),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("verify", [True, False])
def test_what_no_file_holds_is_refused(name, verify, exporter):
    torch.manual_seed(0)
    with pytest.raises(CompatError, match=r"is changed; move that out|binds count of an outer scope"):
        export_compat(REFUSED[name], torch.randn(3, 4), dynamic="batch", exporter=exporter, verify=verify)


def test_namespaces_have_the_values_of_the_branch_that_is_taken(exporter):
    model = of_an_object(lambda: types.SimpleNamespace(n=1), count_in)
    torch.manual_seed(0)
    result = export_compat(model, torch.randn(3, 4), dynamic="batch", exporter=exporter, verify=False)
    for columns in ((1.0, 60.0), (60.0, 1.0), (60.0, 70.0), (1.0, 2.0)):
        x = torch.tensor([[*columns, 0.0, 0.0]])
        for found, wanted in zip(result(x), model(x), strict=True):
            torch.testing.assert_close(found, wanted)
