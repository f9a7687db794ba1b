"""torch's own samples of its operators through both exporters of stock and of export_compat.

The samples are those of torch.testing's op_db. Each file is compared with eager torch on the sample and on the same
values in another order, by this script's own comparison. Every operator runs in a process of its own. Rows are kept: a
second run with the same file goes on where the first stopped.

    python scripts/opinfo.py --out rows.jsonl --columns torchscript-17 --every 4 [--only sort] [--page opinfo.md]
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import io
import itertools
import json
import multiprocessing
import os
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import onnxruntime
import torch
from torch import Tensor, nn
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

COLUMNS = ("torchscript-17", "dynamo-18", "dynamo-20")
DTYPES = {"float32": torch.float32, "float64": torch.float64, "int64": torch.int64}
SAMPLES = 3
TOLERANCE = {torch.float16: 1e-2, torch.bfloat16: 5e-2, torch.float64: 1e-4}
Row = dict[str, Any]


class Call(nn.Module):
    """One operator with the arguments of one sample; its tensors are the model's inputs."""

    def __init__(self, op: Any, arguments: Any) -> None:
        super().__init__()
        self._op = op
        leaves, self._structure = pytree.tree_flatten(arguments)
        self.tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        self._leaves = [None if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        self._places = [index for index, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]

    def forward(self, *tensors: Tensor) -> Any:
        """Calls the operator."""
        leaves = list(self._leaves)
        for place, tensor in zip(self._places, tensors, strict=True):
            leaves[place] = tensor
        (first, args, kwargs) = pytree.tree_unflatten(leaves, self._structure)
        return self._op(first, *args, **kwargs)


def calls_of(op: Any, dtype: torch.dtype) -> Iterator[Call]:
    """The first samples of an operator."""
    torch.manual_seed(0)
    samples = itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=False), SAMPLES)
    for sample in samples:
        yield Call(op.op, (sample.input, tuple(sample.args), dict(sample.kwargs)))


def outputs_of(call: Call, tensors: list[Tensor]) -> list[Any]:
    """What eager torch computes: tensors and numbers, in order."""
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = call(*[tensor.clone() for tensor in tensors])
    return [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, (Tensor, bool, int, float))]


def in_another_order(tensors: list[Tensor]) -> list[Tensor]:
    """The same values, those of real tensors the other way round."""
    return [t.flatten().flip(0).reshape(t.shape) if t.is_floating_point() else t for t in tensors]


def export(call: Call, column: str, *, ours: bool) -> bytes:
    """The file of one column."""
    exporter, opset = column.split("-")
    names = [f"i{index}" for index in range(len(call.tensors))]
    args = tuple(tensor.clone() for tensor in call.tensors)
    options: Any = {"input_names": names, "opset_version": int(opset)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if ours:
            from torch_onnx_compat import export_compat

            made = export_compat(call, args, exporter=exporter, **options)
            assert made.model_bytes is not None
            return made.model_bytes
        if exporter == "dynamo":
            program: Any = torch.onnx.export(call, args, None, dynamo=True, verbose=False, **options)
            return bytes(program.model_proto.SerializeToString())
        file: Any = io.BytesIO()
        torch.onnx.export(call, args, file, dynamo=False, **options)
        return bytes(file.getvalue())


def judge(call: Call, file: bytes) -> str:
    """What is wrong with a file; empty if nothing is."""
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    for tensors in (call.tensors, in_another_order(call.tensors)):
        try:
            wanted = outputs_of(call, tensors)
        except Exception:  # eager torch refuses the values in another order, with errors of all kinds
            continue
        feeds = {f"i{index}": tensor.numpy() for index, tensor in enumerate(tensors)}
        if not set(names) <= set(feeds):
            return f"takes {names}"
        found = session.run(None, {name: feeds[name] for name in names})
        if len(found) != len(wanted):
            return f"{len(found)} outputs for {len(wanted)}"
        for one, value in zip(found, wanted, strict=True):
            text = compare(one, value)
            if text:
                return text
    return ""


def compare(found: Any, wanted: Any) -> str:
    """How an output differs from eager torch's; empty if it does not."""
    tolerance = TOLERANCE.get(wanted.dtype, 1e-3) if isinstance(wanted, Tensor) else 1e-3
    if isinstance(wanted, Tensor) and wanted.is_complex():
        wanted = torch.view_as_real(wanted.resolve_conj())
    value = wanted.detach().resolve_neg().numpy() if isinstance(wanted, Tensor) else np.asarray(wanted)
    if found.shape != value.shape:
        return f"shape {found.shape} for {value.shape}"
    if isinstance(wanted, Tensor) and found.dtype != value.dtype:
        return f"type {found.dtype} for {value.dtype}"
    a, b = found.astype(np.float64), value.astype(np.float64)
    scale = float(np.abs(b[np.isfinite(b)]).max()) if np.isfinite(b).any() else 1.0
    return "" if np.allclose(a, b, tolerance, 1e-5 * max(scale, 1e-3), equal_nan=True) else "other values"


def run_operator(op: Any, columns: list[str], dtypes: list[str], pipe: Any) -> None:
    """Exports and judges all samples of one operator in this process."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):  # torch's C++ prints the graphs that it refuses
        os.dup2(nowhere, descriptor)
    torch.set_num_threads(1)
    for dtype in dtypes:
        if DTYPES[dtype] not in op.supported_dtypes("cpu"):
            continue
        try:
            calls = list(calls_of(op, DTYPES[dtype]))
        except Exception as error:
            pipe.send({"dtype": dtype, "eager": f"{type(error).__name__}"})
            continue
        for number, call in enumerate(calls):
            for column in columns:
                row: Row = {"dtype": dtype, "sample": number, "column": column}
                pipe.send({**row, "begun": True})
                pipe.send({**row, **verdicts(call, column)})
    pipe.send(None)


def verdicts(call: Call, column: str) -> Row:
    """Verdicts on both files of one column; *none* where eager torch gives no one answer."""
    try:
        first, second = outputs_of(call, call.tensors), outputs_of(call, call.tensors)
    except Exception as error:
        return {"eager": type(error).__name__}
    same = all(
        torch.equal(torch.as_tensor(a).nan_to_num(), torch.as_tensor(b).nan_to_num()) if not _odd(a) else True
        for a, b in zip(first, second, strict=True)
    )
    if not call.tensors or not same or not first:
        return {"eager": "no one answer"}
    row: Row = {}
    for who in ("stock", "ours"):
        try:
            file = export(call, column, ours=who == "ours")
        except Exception as error:
            known = who == "stock" or any(kind.__name__ == "CompatError" for kind in type(error).__mro__)
            row[who] = "refused" if known else "crash"
            row[f"{who}_reason"] = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            continue
        try:
            wrong = judge(call, file)
        except Exception as error:
            wrong = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        row[who], row[f"{who}_reason"] = ("WRONG" if wrong else "right"), wrong
    return row


def _odd(value: Any) -> bool:
    return isinstance(value, Tensor) and (value.is_complex() or value.is_sparse or value.is_quantized)


def rows_of(op: Any, columns: list[str], dtypes: list[str], limit: float) -> list[Row]:
    """The rows of one operator, which runs in a process of its own."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    process = context.Process(target=run_operator, args=(op, columns, dtypes, there))
    process.start()
    there.close()
    rows: list[Row] = []
    begun: Row = {}
    try:
        while here.poll(limit):
            row = here.recv()
            if row is None:
                return rows
            if "begun" in row:
                begun = {key: value for key, value in row.items() if key != "begun"}
            else:
                rows.append(row)
        return [*rows, {**begun, "stock": "?", "ours": "out of time"}]
    except EOFError:
        return [*rows, {**begun, "stock": "?", "ours": "process died"}]
    finally:
        process.kill()
        process.join()


def run_all(indices: list[int], args: argparse.Namespace, done: set[str]) -> None:
    """Runs operators one after the other; appends rows to the file."""
    for index in indices:
        op = op_db[index]
        name = f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name
        columns = [column for column in args.columns if f"{name} {column}" not in done]
        if not columns:
            continue
        rows = rows_of(op, columns, args.dtypes, args.limit)
        with args.out.open("a") as file:
            for row in [*rows, *({"done": column} for column in columns)]:
                file.write(json.dumps({"op": name, **row}) + "\n")
        counts = Counter(f"{row.get('stock')} -> {row.get('ours')}" for row in rows if "ours" in row)
        print(f"{name:40} {dict(counts)}", flush=True)


def page(rows: list[Row], note: str = "") -> str:
    """The page of results, with what is to be said of the run."""
    versions = ", ".join(f"{p} {importlib.metadata.version(p)}" for p in ("torch", "onnx", "onnxscript", "onnxruntime"))
    out = ["# torch's own samples of its operators", "", f"{datetime.date.today()}, {versions}, one thread.", ""]
    out += [
        "`python scripts/opinfo.py`; the judge is the script's own. Samples are the first three of each operator and"
    ]
    out += ["element type; *died*: onnxruntime ends the process, by stock's file or by ours.", ""]
    out += [note, ""] if note else []
    for column in COLUMNS:
        own = [row for row in rows if row.get("column") == column and "ours" in row]
        ops = {row["op"] for row in own}
        if not own:
            continue
        out += [f"## {column}: {len(ops)} of {len(op_db)} operators, {len(own)} samples", ""]
        out += ["| | stock | ours |", "| --- | --- | --- |"]
        verdicts_seen = sorted({row[who] for row in own for who in ("stock", "ours")})
        for verdict in verdicts_seen:
            counts = [sum(row[who] == verdict for row in own) for who in ("stock", "ours")]
            out.append(f"| {verdict} | {counts[0]} | {counts[1]} |")
        worse = [row for row in own if row["stock"] == "right" and row["ours"] != "right"]
        out += ["", f"Stock right, ours not: {len(worse)}.", ""]
        for row in worse:
            reason = str(row.get("ours_reason", ""))[:160]
            out.append(f"* {row['op']}, {row['dtype']}, sample {row['sample']}: {row['ours']}: {reason}")
        wrong = [row for row in own if row["ours"] in ("WRONG", "crash")]
        out += ["", f"Ours wrong or crashed: {len(wrong)}.", ""]
        for row in wrong:
            reason = str(row.get("ours_reason", ""))[:160]
            out.append(f"* {row['op']}, {row['dtype']}, sample {row['sample']}: {row['ours']}: {reason}")
        out.append("")
    return "\n".join(out)


def main() -> None:
    """Runs the operators, and writes the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True, help="rows, one JSON object a line")
    parser.add_argument("--page", type=Path)
    parser.add_argument("--note", default="", help="what the page is to say of the run")
    parser.add_argument("--columns", nargs="+", default=list(COLUMNS), choices=COLUMNS)
    parser.add_argument("--dtypes", nargs="+", default=list(DTYPES), choices=list(DTYPES))
    parser.add_argument("--every", type=int, default=1, help="one operator in so many")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", default="", help="part of an operator's name")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for one sample")
    args = parser.parse_args()
    rows = [json.loads(line) for line in args.out.read_text().splitlines()] if args.out.exists() else []
    done = {f"{row['op']} {row['done']}" for row in rows if "done" in row}
    warm = Call(torch.relu, (torch.rand(2, 3), (), {}))
    for column in args.columns:  # what every export needs is imported and built once, before the processes are forked
        for ours in (False, True):
            export(warm, column, ours=ours)
    wanted = [i for i in range(args.first, len(op_db), args.every) if args.only in op_db[i].name]
    run_all(wanted, args, done)
    if args.page is not None:
        rows = [json.loads(line) for line in args.out.read_text().splitlines()]
        args.page.write_text(page([row for row in rows if "done" not in row], args.note))


if __name__ == "__main__":
    main()
