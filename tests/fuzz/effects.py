"""Random programs whose decisions are about flags, and whose branches do what Python code may do.

Every decision is about a flag of its own, so all sides of a program can be run: at the example all flags are down.
In a template {a} and {b} are tensors of shape (4, 3), {v} is a name that it binds, {flag} and {flag2} are conditions.
"""

from __future__ import annotations

import random

from fuzz.aliases import FLAGS
from fuzz.programs import HEADER, Input, Program

CONSTRUCTS = (
    "l = [{a}, {b}]\nif {flag}:\n    l.append({a} * 2)\n{v} = torch.stack(l).sum(0)",
    "l = [{a}, {b}]\nif {flag}:\n    l.pop()\n{v} = sum(l)",
    "l = [{a}, {b}]\nif {flag}:\n    l.pop(0)\n{v} = l[0] * len(l)",
    "l = [{a}, {b}]\nif {flag}:\n    l.reverse()\n{v} = l[0] - l[1]",
    "l = [{a}, {b}]\nif {flag}:\n    l.insert(0, {b} + 1)\n{v} = l[0]",
    "l = [{a}, {b}]\nif {flag}:\n    l.clear()\n{v} = sum(l, {a})",
    "l = [{a}, {b}]\nif {flag}:\n    del l[0]\n{v} = l[-1] + l[0]",
    "l = [{a}, {b}]\nif {flag}:\n    l[0], l[1] = l[1], l[0]\n{v} = l[0] * 2 - l[1]",
    "l = [{a}, {b}]\nm = l\nif {flag}:\n    m[0] = {b} * 3\n{v} = l[0]",
    "l = [{a}]\nif {flag}:\n    l += [{b}]\n{v} = l[-1]",
    "l = [{a}] * 2\nif {flag}:\n    l.extend([{b}, {a}])\n{v} = l[len(l) - 1] + len(l)",
    "d = {{'p': {a}}}\nif {flag}:\n    d['q'] = {b}\n{v} = sum(d.values())",
    "d = {{'p': {a}, 'q': {b}}}\nif {flag}:\n    d.pop('q')\n{v} = sum(d.values())",
    "d = {{'p': {a}}}\nif {flag}:\n    d.update(p={b})\n{v} = d['p']",
    "d = {{'p': {a}}}\nif {flag}:\n    d.setdefault('q', {b})\n{v} = d.get('q', {a} * 2)",
    "d = {{'p': {a}}}\n{v} = d['q'] if 'q' in d else {b}\nif {flag}:\n    del d['p']\n{v} = {v} + len(d)",
    (
        "d = {{}}\nfor key in ('p', 'q'):\n    if {flag}:\n        d[key] = {a}\n    else:\n"
        "        d[key] = {b} * 2\n{v} = d['p'] + d['q']"
    ),
    "t = ({a}, {b})\nif {flag}:\n    t = t[::-1]\n{v} = t[0] - 2 * t[1]",
    "t = ({a}, {b})\nif {flag}:\n    t = t + ({a} * 2,)\n{v} = sum(t)",
    "s = {{1, 2}}\nif {flag}:\n    s.add(3)\n{v} = {a} * len(s)",
    "{v} = sum({a} * i for i in range(3) if {flag})+ {b}",
    "{v} = torch.stack([t for t, f in zip(({a}, {b}), flags) if f > 100] or [{a}]).sum(0)",
    "{v} = {{True: {a}, False: {b}}}[bool({flag})]",
    "{v} = ({a}, {b})[int({flag})]",
    "{v} = [{a}, {b}, {a} + {b}][int((flags > 100).sum()) % 3]",
    "{v} = dict(zip(('p', 'q'), ({a}, {b})))['p' if {flag} else 'q']",
    "{v} = next((t for t, f in zip(({a}, {b}), flags) if f > 100), {a} * 3)",
    "{v} = max((float(f), i) for i, f in enumerate(flags))[1] * {a}",
    "{v} = sorted([2, 1, 3], reverse=bool({flag}))[0] * {a}",
    "{v} = (all(f > 100 for f in flags) + 2 * any(f > 100 for f in flags)) * {a}",
    "{v} = functools.reduce(lambda p, q: p + q if {flag} else p - q, [{a}, {b}, {a} * 2])",
    "{v} = list(itertools.accumulate([{a}, {b}], lambda p, q: p * q if {flag} else q))[-1]",
    "{v} = [f for f in (torch.sin, torch.cos)][1 if {flag} else 0]({a})",
    "{v} = (torch.relu if {flag} else torch.tanh)({a})",
    "{v} = getattr(torch, 'sin' if {flag} else 'cos')({a})",
    "{v} = getattr({a}, 'abs' if {flag} else 'neg')()",
    "n = 0\nfor f in flags:\n    if f > 100:\n        n += 1\n{v} = {a} * n",
    "n = 1\nwhile n < 4 and not {flag}:\n    n += 1\n{v} = {a} * n",
    "n = 0\nwhile True:\n    n += 1\n    if {flag} or n > 3:\n        break\n{v} = {a} + n",
    "for n in range(4):\n    if flags[n % 3] > 100:\n        break\nelse:\n    n = 10\n{v} = {a} + n",
    "k = 2 if {flag} else 3\n{v} = {a} ** k / k",
    "k = 2\nif {flag}:\n    k = 0.5\n{v} = {a} * k",
    "k = None\nif {flag}:\n    k = {b}\n{v} = {a} if k is None else {a} + k",
    "k = None if {flag} else 2\n{v} = {a} * (k or 5)",
    "{v} = {a} * (3 if {flag} and {flag2} else 4)",
    "{v} = {a} * (3 if {flag} or not {flag2} else 4)",
    "{v} = {a} * (1 < (2 if {flag} else 0) < 3)",
    "{v} = {a} - ({flag}) * 2",
    "{v} = {a} * float({flag}) + int({flag2})",
    "m = 'one' if {flag} else 'two'\n{v} = {a} * len(m) + (m == 'two')",
    "m = 'sum' if {flag} else 'mean'\n{v} = {a} + getattr({b}, m)()",
    "match int({flag}):\n    case 0:\n        {v} = {a} * 2\n    case _:\n        {v} = {b} * 3",
    "try:\n    if {flag}:\n        raise ValueError\n    {v} = {a} * 2\nexcept ValueError:\n    {v} = {b}",
    "{v} = {a}\ntry:\n    {v} = {v} * 2\n    assert not ({flag})\nexcept AssertionError:\n    {v} = {v} - 1",
    "{v} = {a}\ntry:\n    if {flag}:\n        {v} = {v} + 1\nfinally:\n    {v} = {v} * 2",
    "with torch.no_grad():\n    if {flag}:\n        {v} = {a} + 1\n    else:\n        {v} = {a} * 2",
    "if {flag}:\n    return {a}, {b}, {a} * 2",
    "if {flag}:\n    if {flag2}:\n        return {a}, {b}, {a} * 2\n    {a} = {a} - 1",
    "for step in range(3):\n    if flags[step] > 100:\n        return {a} * step, {b}, {b}\n    {a} = {a} + 1",
    "for step in range(3):\n    if flags[step] > 100:\n        continue\n    {a} = {a} * 2 + step",
    (
        "def inner(t, k=2):\n    if {flag}:\n        return t * k\n    if {flag2}:\n        return t + k\n"
        "    return inner2(t)\n\ndef inner2(t):\n    return t - 1 if {flag} else t * 5\n\n"
        "{v} = inner({a}) + inner({b}, k=3)"
    ),
    (
        "acc = []\ndef push(t):\n    acc.append(t)\n    if {flag}:\n        acc.append(t * 2)\n\npush({a})\n"
        "push({b})\n{v} = sum(acc)"
    ),
    (
        "count = 0\ndef bump():\n    nonlocal count\n    count += 1 if {flag} else 2\n    return count\n\n"
        "bump()\nbump()\n{v} = {a} * count"
    ),
    "f = (lambda t: t * 2) if {flag} else (lambda t: t + 3)\n{v} = f({a})",
    "f = functools.partial(torch.add, other={b}, alpha=2 if {flag} else 3)\n{v} = f({a})",
    "if (k := 5 if {flag} else 6) > 5:\n    {v} = {a} * k\nelse:\n    {v} = {b} + k",
    "p, *q = [{a}, {b}, {a} + 1] if {flag} else [{b}, {a}, {b} * 2]\n{v} = p + q[1]",
    "p = q = {a}\nif {flag}:\n    q = {b}\n{v} = p - q * 2",
    "{v} = {a}\nif not {flag}:\n    pass\nelif {flag2}:\n    {v} = {b}\nelse:\n    {v} = {a} + {b}",
    "x2 = {a}\nif {flag}:\n    del x2\n    x2 = {b} * 2\n{v} = x2",
    "self.t = {a}\nif {flag}:\n    self.t = {b} * 2\n{v} = self.t",
    "self.k = 1\nif {flag}:\n    self.k += 2\n{v} = {a} * self.k",
    "if {flag}:\n    self.buf = self.buf + 1\n{v} = {a} + self.buf",
    "if {flag}:\n    self.buf.add_(1)\n{v} = {a} + self.buf",
    "self.l = [{a}]\nif {flag}:\n    self.l.append({b})\n{v} = sum(self.l)",
    "self.d = {{}}\nif {flag}:\n    self.d['k'] = {b}\n{v} = self.d.get('k', {a})",
    "h = Holder()\nh.t = {a}\nif {flag}:\n    h.t = {b} + 1\n{v} = h.t",
    "h = Holder()\nh.t = {a}\nif {flag}:\n    h.set({b})\n{v} = h.t",
    "h = Holder()\nh.t = {a} if {flag} else {b}\n{v} = h.get()",
    "Holder.n = 1\nif {flag}:\n    Holder.n = 2\n{v} = {a} * Holder.n",
    "p = Pair({a}, {b})\nif {flag}:\n    p = Pair(p.two, p.one)\n{v} = p.one - p.two * 2",
    "p = Pair({a}, {b})\nif {flag}:\n    p = p._replace(one={b})\n{v} = p.one",
    "o = Data({a}, 2)\nif {flag}:\n    o = Data({b}, 3)\n{v} = o.t * o.n",
    "o = Data({a}, 2)\nif {flag}:\n    o.n = 5\n{v} = o.t * o.n",
    "{v} = self.lin(({a} if {flag} else {b}))",
    "layer = self.lin if {flag} else self.lin2\n{v} = layer({a})",
    "{v} = self.layers[int({flag})]({a})",
    "{v} = {a}\nfor layer, f in zip(self.layers, flags):\n    if f > 100:\n        {v} = layer({v})",
    "{v} = {a}\nfor i, layer in enumerate(self.layers):\n    {v} = layer({v}) if flags[i] > 100 else {v} * 2",
    "{v} = F.dropout({a}, 0.5, training=bool({flag}) and False)",
    "{v} = F.pad({a}, (1, 0) if {flag} else (0, 1))[:, :3]",
    "{v} = {a}.sum(0 if {flag} else 1, keepdim=True)[:1, :1] + {b}",
    "{v} = {a}.transpose(0, 1).reshape(4, 3) if {flag} else {a}",
    "{v} = {a}[1:] if {flag} else {a}[:-1]\n{v} = torch.cat([{v}, {b}[:1]])",
    "{v} = {a}[2 if {flag} else 0] + {b}",
    "{v} = {a}[:, [0, 2, 1] if {flag} else [1, 0, 2]]",
    "k = 1 if {flag} else 2\n{v} = torch.cat([{a}[k:], {b}[:k]])",
    "k = 1 if {flag} else 2\n{v} = {a}.roll(k, 0)",
    "k = 3 if {flag} else 2\n{v} = {a}.topk(k, 0)[0].sum(0) + {b}",
    "mask = {a} > 0 if {flag} else {b} > 0\n{v} = {a}.masked_fill(mask, 0)",
    "{v} = {a}.clone()\nif {flag}:\n    {v}[{a} > 0] = 0\n{v} = {v} + 1",
    "{v} = {a}.clone()\nif {flag}:\n    {v}[0] = {b}[1]\nelse:\n    {v}[:, 1] = 5",
    "{v} = {a}.clone()\nfor r in range(2):\n    if flags[r] > 100:\n        {v}[r] += {b}[r]",
    ("{v} = torch.zeros(4, 3)\nif {flag}:\n    {v} = {v}.index_add(0, torch.tensor([0, 2]), {a}[:2])\n{v} = {v} + {b}"),
    "k = torch.tensor(2 if {flag} else 3)\n{v} = {a} * k",
    "k = torch.tensor([1.0, 2.0 if {flag} else 5.0, 3.0])\n{v} = {a} * k",
    "{v} = torch.full((4, 3), 2.0 if {flag} else 3.0) + {a}",
    "{v} = torch.arange(3 if {flag} else 4).sum() * {a}",
    "{v} = {a}.to(torch.float64 if {flag} else torch.float32).float()",
    "{v} = {a}.round(decimals=1 if {flag} else 0)",
    "{v} = {a}.clamp(min=-1 if {flag} else None, max=1)",
    "{v} = torch.einsum('ij,ik->jk' if {flag} else 'ij,ik->kj', {a}, {b}).sum() + {a}",
)
"""What decides between values: containers, numbers, loops, functions, classes."""

EFFECTS = (
    "s = io.BytesIO()\nif {flag}:\n    s.write(b'xx')\n{v} = {a} * len(s.getvalue())",
    "l = [{a}]\nif {flag}:\n    push(l, {b})\n{v} = sum(l)",
    "d = {{'p': {a}}}\nif {flag}:\n    put(d, 'p', {b})\n{v} = d['p']",
    "l = [{a}, {b}]\ndef swap():\n    l.reverse()\n\nif {flag}:\n    swap()\n{v} = l[0]",
    "h = Holder()\nh.t = {a}\nif {flag}:\n    put_in(h, {b})\n{v} = h.t",
    "h = Holder()\nh.t = {a}\nh.k = Holder()\nh.k.t = {b}\nif {flag}:\n    h.k.set({a} * 3)\n{v} = h.k.t",
    "self.h = Holder()\nself.h.t = {a}\nif {flag}:\n    self.h.set({b})\n{v} = self.h.t",
    "GLOBAL.t = {a}\nif {flag}:\n    GLOBAL.set({b})\n{v} = GLOBAL.t",
    "LIST.clear()\nif {flag}:\n    push(LIST, {b})\n{v} = {a} + len(LIST)",
    "h = Counter2()\nif {flag}:\n    h.bump()\n{v} = {a} * h.n",
    "h = Counter2()\nfor f in flags:\n    if f > 100:\n        h.bump()\n{v} = {a} * h.n",
    "s = set()\nif {flag}:\n    add_to(s, 3)\n{v} = {a} * len(s)",
    "it = iter([{a}, {b}])\nif {flag}:\n    next(it)\n{v} = next(it)",
    "gen = numbers()\nif {flag}:\n    next(gen)\n{v} = {a} * next(gen)",
    "q = deque([{a}, {b}])\nif {flag}:\n    q.popleft()\n{v} = q[0]",
    "q = deque([{a}, {b}])\nif {flag}:\n    q.rotate(1)\n{v} = q[0]",
    "c = Counter()\nif {flag}:\n    c['x'] += 1\n{v} = {a} * (c['x'] + 1)",
    "c = defaultdict(list)\nif {flag}:\n    c['x'].append({a})\n{v} = sum(c['x'], {b})",
    "o = OrderedDict(p={a}, q={b})\nif {flag}:\n    o.move_to_end('p')\n{v} = next(iter(o.values()))",
    "s = Slots()\ns.t = {a}\nif {flag}:\n    s.set({b})\n{v} = s.t",
    "s = Slots()\ns.t = {a}\nif {flag}:\n    s.t = {b}\n{v} = s.t",
    "p = Prop()\np.t = {a}\nif {flag}:\n    p.t = {b}\n{v} = p.t",
    "m = np.zeros(2)\nif {flag}:\n    m[0] = 2\n{v} = {a} * float(m.sum())",
    "w = [0]\ndef inc():\n    w[0] += 1\n\nif {flag}:\n    inc()\n{v} = {a} * w[0]",
    "setattr(self, 'zz', 1)\nif {flag}:\n    setattr(self, 'zz', 2)\n{v} = {a} * self.zz",
    "h = Holder()\nh.t = {a}\nif {flag}:\n    setattr(h, 't', {b})\n{v} = h.t",
    "h = Holder()\nh.t = {a}\nif {flag}:\n    h.__dict__['t'] = {b}\n{v} = h.t",
    "h = Holder()\nh.t = {a}\nif {flag}:\n    vars(h).update(t={b})\n{v} = h.t",
    "h = Holder()\nh.t = {a}\nif {flag}:\n    Holder.set(h, {b})\n{v} = h.t",
    "l = [{a}, {b}]\n[l.append({a} * 2) for f in flags if f > 100]\n{v} = sum(l)",
    "l = [{a}]\n({flag}) and l.append({b})\n{v} = sum(l)",
    "l = [{a}]\nl.append({b}) if {flag} else None\n{v} = sum(l)",
    "h = Holder()\nh.t = {a}\n{v} = h.set({b}) or {a} if {flag} else {a}\n{v} = {v} + h.t",
    "self.lin.weight.data.mul_(1)\nif {flag}:\n    self.lin.extra = {b}\n{v} = {a} + getattr(self.lin, 'extra', 0)",
    "if {flag}:\n    self.register_buffer('late', {b} * 1)\n{v} = {a} + (self.late if hasattr(self, 'late') else 0)",
    "if {flag}:\n    self.lin3 = self.lin2\nelse:\n    self.lin3 = self.lin\n{v} = self.lin3({a})",
    "self.mode = 'x'\nif {flag}:\n    self.mode = 'y'\n{v} = {a} if self.mode == 'x' else {b}",
    "self.seen = []\nfor f in flags:\n    if f > 100:\n        push(self.seen, f)\n{v} = {a} * len(self.seen)",
    "if {flag}:\n    helper_state(self, {b})\n{v} = {a} + getattr(self, 'hs', 0)",
    (
        "memo = {{}}\ndef get(k):\n    if k not in memo:\n        memo[k] = {a} * k\n    return memo[k]\n\n"
        "{v} = get(2) if {flag} else get(3)\n{v} = {v} + len(memo)"
    ),
    "d = dict(a1={a})\nif {flag}:\n    d |= dict(a1={b})\n{v} = d['a1']",
    "l = [[{a}], [{b}]]\nif {flag}:\n    l[0].append({b})\n{v} = sum(l[0])",
    "l = [[{a}], [{b}]]\nm = l[0]\nif {flag}:\n    m.append({b})\n{v} = sum(l[0])",
    "d = {{'p': [{a}]}}\nif {flag}:\n    d['p'].append({b})\n{v} = sum(d['p'])",
    "d = {{'p': {{'q': {a}}}}}\nif {flag}:\n    d['p']['q'] = {b}\n{v} = d['p']['q']",
    "t = ([{a}], {b})\nif {flag}:\n    t[0].append(t[1])\n{v} = sum(t[0])",
    "o = Data([{a}], 2)\nif {flag}:\n    o.t.append({b})\n{v} = sum(o.t)",
    "k = Data({a}, 2)\nif {flag}:\n    k = replace(k, n=3)\n{v} = k.t * k.n",
    "k = Data({a}, 2)\nif {flag}:\n    k.n += 1\n{v} = k.t * k.n",
)
"""What a branch changes that has other names: through helpers, methods, globals, iterators."""

TWICE = (
    *(
        f"{begins}\n{{v}} = {call.format(t='{a}')} if {{flag}} else {{a}}\n"
        f"{{v}} = {{v}} - ({call.format(t='{b}')} if {{flag2}} else {{b}})"
        for begins, call in (
            ("count = 0\ndef bump(t):\n    nonlocal count\n    count += 1\n    return t * count\n", "bump({t})"),
            ("def bump(t):\n    bump.count += 1\n    return t * bump.count\n\nbump.count = 0", "bump({t})"),
            ("ids = itertools.count(2)", "{t} * next(ids)"),
            ("draws = random.Random(3)", "{t} * draws.random()"),
            ("numbers = array.array('i', (1, 2, 3))", "{t} * numbers.pop()"),
            ("following = iter(range(1, 9)).__next__", "{t} * following()"),
            ("line = queue.Queue()\nline.put(2)\nline.put(3)", "{t} * line.get()"),
            ("held = UserList((2, 3, 4))", "{t} * held.pop()"),
            ("source = np.random.default_rng(3)", "{t} * float(source.random())"),
            ("random.seed(3)", "{t} * random.random()"),
            ("first, rest = itertools.tee((2, 3, 4))", "{t} * next(first)"),
            ("space = types.SimpleNamespace(n=1)", "{t} * count_in(space)"),
            ("count = 0\ndef inner():\n    nonlocal count\n    count += 1\n    return count\n", "{t} * helped(inner)"),
        )
    ),
    "count = 0\ndef hit():\n    nonlocal count\n    count += 1\n    return count < 2\n\n"
    "{v} = {a}\nif {flag} and hit():\n    {v} = {v} * 2\nif {flag2} and hit():\n    {v} = {v} + {b}",
    "count = 0\ndef bump(t):\n    nonlocal count\n    count += 1\n    return t * count\n\n"
    "{v} = sum(bump(t) if f > 100 else t for t, f in zip(({a}, {b}, {a} + 1), flags))",
)
"""What one branch changes and another one reads, of two that may be taken apart."""

WRITES = (
    "{v} = {a}.clone()\nfor step in range(3):\n    if flags[step] > 100:\n        break\n    {v}[:, step].mul_(2)",
    "{v} = {a}.clone()\nn = 0\nwhile n < 3 and not {flag}:\n    {v}[n:].add_(1)\n    n += 1",
    "{v} = {a}.clone()\nfor row, f in zip({v}, flags):\n    if f > 100:\n        row.clamp_(max=0.5)",
    "{v} = {a}.clone()\nif {flag}:\n    {v}.t()[0].copy_({b}[:, 1])\n{v} = {v} * 2",
    "o = [{a}.clone(), {b}.clone()]\nfor step in range(2):\n    if flags[step] > 100:\n        continue\n"
    "    o[step][step + 1].zero_()\n{v} = o[0] - o[1]",
    "{v} = {a}.clone()\nfor step in range(3):\n    {v}[step].add_(1)\n    if flags[step] > 100:\n"
    "        return {v}, {b}, {v} * 2\n    {v}[:, step].mul_(3)",
    "w = {a}.clone()\n{v} = w[1:]\nfor step in range(2):\n    if flags[step] > 100:\n        break\n"
    "    {v}.add_(step + 1)\n"
    "{v} = w + {b}",
    "{v} = {a}.clone()\nfor i in range(int((flags > 100).sum())):\n    {v}[i].add_({b}[i])",
    "{v} = {a}.clone()\nfor i in range(int((flags > 100).sum())):\n    {v}[:, i : i + 1].mul_(2)\n"
    "    {v}.narrow(0, i, 1).sub_(1)",
    "{v} = {a}.clone()\nfor t in torch.arange((flags > 100).sum()):\n    {v}.t()[t].clamp_(max=0.1)",
)
"""Writes through items and views, in rounds that values end."""

LEAVING = (
    "n = {a}.sum() * 0\nfor f in flags:\n    try:\n        if f > 100:\n            continue\n        n = n + 1\n"
    "    finally:\n        n = n * 2 + f.clamp(min=50)\n{v} = {a} + n",
    "n = {b}.sum() * 0\nfor row, f in zip({a}, flags):\n    try:\n        if f > 100:\n            break\n"
    "        n = n + row.sum()\n    finally:\n        n = n - f.clamp(min=50)\n{v} = {b} * n",
    "n, i = 0, 0\nwhile i < 3:\n    try:\n        if flags[i] > 100:\n            continue\n        n = n + i\n"
    "    finally:\n        i = i + 1\n{v} = {a} * n + i",
)
"""Rounds that leave a try with a finally."""

HELD = tuple(
    f"{begins}\nif {{flag}}:\n    {first}\nelse:\n    {second}\n{{v}} = {{a}} + {held}"
    for held, begins in (
        ("self.buf", "kept = self.buf"),
        ("GLOBAL.t", "GLOBAL.set({b}[0].clone())"),
        ("k.t", "k = Data({b}[1].clone(), 2)"),
        ("d['p']", "d = {{'p': {a}[2].clone()}}"),
    )
    for first, second in (
        (f"{held} += 1", f"{held} = {held} - 2"),
        (f"{held} = {held} - 2", f"{held}.mul_(3)"),
        (f"{held}[1] = 3.0", f"{held} = {{a}}[0]"),
        (f"t = {held}\n    t += 1", f"{held} = {held} * 2"),
        (f"{held}.copy_({{a}}[0])\n    {held} = {held} * 3", f"{held} = {held} - 2\n    {held}.add_(1)"),
    )
)
"""What an object holds: one branch writes to it, and the other one puts something else in its place."""

_NAMED_TWICE = tuple(
    f"{begins}\n{choice}\nif {{flag2}}:\n    {change}\n{{v}} = {seen}"
    for begins, choice, seen, changes in (
        (
            "l, m = [{a}, {b}], [{b}, {a} * 2]",
            "k = l if {flag} else m",
            "l[0] - m[-1] + k[0] * 2",
            ("k[0] = {a} * 5", "l[0] = {a} * 5", "k.reverse()", "m.append({b} * 3)", "k += [{a} * 3]", "l = l + [{b}]"),
        ),
        (
            "l = [{a}, {b}]",
            "k = l[:] if {flag} else l",
            "l[0] - k[1]",
            ("k.reverse()", "l.pop(0)", "l[1] = {a}", "k = k[::-1]"),
        ),
        (
            "d = {{'p': {a}, 'q': {b}}}",
            "e = d\nif {flag}:\n    e = dict(d)",
            "d['p'] - e['q']",
            ("e['p'] = {b} * 3", "d['q'] = {a} * 3", "e.update(q={a} * 4)", "d = {{'p': {b}, 'q': {a}}}"),
        ),
        (
            "t = ([{a}], [{b}])",
            "p, q = t if {flag} else t[::-1]",
            "t[0][0] - q[0]",
            ("p[0] = {b} * 7", "t[1][0] = {a} * 7", "q = [{a} * 2]"),
        ),
    )
    for change in changes
)

CHOSEN = (
    *_NAMED_TWICE,
    "l = [{a}]\nm = l\nif {flag}:\n    m = [*l]\n{v} = {a} * 2 if m is l else {b}",
    "u = {a} + 1\nw = u if {flag} else {b}\n{v} = {a} * 2 if w is u else {b}",
    "clamp = functools.partial(torch.clamp, min=0)\nif {flag}:\n    clamp.keywords['min'] = -5\n{v} = clamp({a})",
    "k = Slots()\nk.set({a})\nh = Holder()\nif {flag}:\n    h.__class__ = Counter2\n{v} = {a} * len(type(h).__name__)",
    "def count():\n    n = 0\n    while True:\n        n += (yield n) or 0\ng = count()\nnext(g)\nif {flag}:\n"
    "    g.send(5)\n{v} = {a} * g.send(1)",
    "class Meter:\n    n = 1\nif {flag}:\n    Meter.n = 4\n{v} = {a} * Meter.n",
    "n = torch.zeros(2)\nif {flag}:\n    n.set_(torch.ones(2))\n{v} = {a} * n.sum()",
)
"""Containers and tensors that a decision chooses, and what changes one of them under its other name."""

LISTED = tuple(
    f"n = (flags[flags > 100] > 150).tolist()\n{{v}} = {{a}} * 2 if {condition} else {{b}}"
    for condition in (
        *("n == [True]", "n != [True, True]", "[True, True] == n", "n == []", "n in ([True], [True, True, True])"),
        *("tuple(n) == (True, True)", "tuple(n) == [True]", "True in n", "False in n and n", "not n or n == [False]"),
    )
)
"""Lists whose length values decide, compared as a whole."""

HELPERS = """import array
import functools
import io
import itertools
import queue
import random
import types
from collections import Counter, OrderedDict, UserList, defaultdict, deque, namedtuple
from dataclasses import dataclass, replace

Pair = namedtuple("Pair", "one two")
LIST = []


@dataclass
class Data:
    t: torch.Tensor
    n: int


class Holder:
    n = 0

    def set(self, t):
        self.t = t

    def get(self):
        return self.t * 2


GLOBAL = Holder()


class Counter2:
    def __init__(self):
        self.n = 1

    def bump(self):
        self.n += 1


class Slots:
    __slots__ = ("t",)

    def set(self, t):
        self.t = t


class Prop:
    @property
    def t(self):
        return self._t

    @t.setter
    def t(self, value):
        self._t = value * 2


def push(l, t):
    l.append(t)


def put(d, k, t):
    d[k] = t


def add_to(s, k):
    s.add(k)


def put_in(h, t):
    h.t = t


def helper_state(m, t):
    m.hs = t


def count_in(h):
    h.n += 1
    return h.n


def helped(function):
    return function()


def numbers():
    yield 2
    yield 3
    yield 4


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)
        self.lin2 = nn.Linear(3, 3)
        self.layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(3))
        self.register_buffer("buf", torch.ones(3))

    def forward(self, x, flags):
"""

ALL = (*CONSTRUCTS, *EFFECTS, *TWICE, *WRITES, *LEAVING, *HELD, *CHOSEN, *LISTED)


def make_effects(seed: int) -> Program:
    """A model of ``x`` (4, 3) and ``flags`` (FLAGS,): one template each at first, and two or three together then."""
    dice = random.Random(seed)
    names, lines = ["a", "b"], ["a = x * 2", "b = x - 1"]
    for _ in range(1 if seed < len(ALL) else dice.randint(2, 3)):
        template = ALL[seed] if seed < len(ALL) else dice.choice(ALL)
        bound = f"v{len(names)}"
        flag, flag2 = (f"flags[{dice.randrange(FLAGS)}] > 100" for _ in range(2))
        a, b = (dice.choice(names) for _ in range(2))
        lines += template.format(a=a, b=b, v=bound, flag=flag, flag2=flag2).splitlines()
        if "{v}" in template:
            names.append(bound)
    lines.append(f"return {names[-1]}, {names[-2]}, {dice.choice(names)}")
    source = HEADER + HELPERS + "".join(f"        {line}\n" if line else "\n" for line in lines)
    return Program(seed=seed, source=source, inputs=(Input("x", (4, 3), {}), Input("flags", (FLAGS,), {})))
