"""Profiles: the TOML files that targets are read from, and that measurements write."""

from __future__ import annotations

import functools
import os
import re
import sys
from pathlib import Path
from typing import Any

from torch_onnx_compat.errors import CompatError, unknown_name
from torch_onnx_compat.targets.placement import Placement
from torch_onnx_compat.targets.target import VERDICTS, Row, Target, Verdict

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DIRECTORY = Path(__file__).parent
ALIASES = {
    "ort": "onnxruntime",
    "ort-web": "onnxruntime-web",
    "ov": "openvino",
    "cv2": "opencv",
    "trt": "tensorrt",
    "litert": "tflite",
}
"""Other names of targets. A name without its version, such as tensorrt, means the newest version that there is."""
_DYNAMIC = ("yes", "partly", "no")


def known_targets() -> tuple[str, ...]:
    """Names of the targets that ship with the package."""
    return tuple(sorted(p.stem for p in DIRECTORY.glob("*.toml")))


def load_target(target: str | os.PathLike[str] | Target) -> Target:
    """Loads a target by name, perhaps with a version (``"opencv@5.0"``), or from the caller's own TOML file.

    Raises:
        CompatError: There is no target of that name or version, or the file is not a profile.
    """
    if isinstance(target, Target):
        return target
    if not isinstance(target, (str, os.PathLike)):
        raise CompatError(f"target={target!r} is a {type(target).__name__}; wanted a name, such as 'onnxruntime'.")
    path = Path(target)
    if path.suffix != ".toml":
        return _load_shipped(str(target))
    return _parse(path, _read(path))


def _load_shipped(spec: str) -> Target:
    name, _, version = spec.partition("@")
    name = resolve_alias(name)
    stems = [s for s in known_targets() if s.partition("@")[0] == name]
    if not stems:
        raise unknown_name("target", spec, (*known_targets(), *ALIASES))
    paths = [DIRECTORY / f"{stem}.toml" for stem in stems]
    found = [_load_once(path, path.stat().st_mtime_ns) for path in paths]
    if not version:
        return found[0]  # the plain name sorts before those with a version
    for target in found:
        if f"{target.version}.".startswith(f"{version}."):
            return target
    versions = ", ".join(t.version or "?" for t in found)
    raise CompatError(f"target {spec!r}: version {version} was not measured; take one of: {versions}.")


@functools.cache
def _load_once(path: Path, changed: int) -> Target:
    """The target of a file that was last changed at a time, in ns: each export asks for it, and a parse is slow."""
    return _parse(path, _read(path))


def resolve_alias(name: str) -> str:
    """The name of the target that a name means: ``trt`` and ``tensorrt`` the newest TensorRT's.

    A name that no target has comes back as it is, or as what its alias stands for.
    """
    name = ALIASES.get(name.lower(), name)
    versions = [s for s in known_targets() if re.fullmatch(rf"{re.escape(name)}-\d[\d.]*", s)]
    if name in known_targets() or not versions:
        return name
    return max(versions, key=lambda s: [int(part) for part in s.rpartition("-")[2].split(".") if part])


def _read(path: Path) -> dict[str, Any]:
    try:
        data: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CompatError(f"target file {str(path)!r} cannot be read: {error.strerror}.") from error
    except tomllib.TOMLDecodeError as error:
        raise CompatError(f"target file {str(path)!r} is no TOML: {error}.") from error
    return data


def _parse(path: Path, data: dict[str, Any]) -> Target:
    try:
        return Target(
            name=data["name"],
            version=data.get("version", ""),
            opset=data["opset"],
            opsets=tuple(data["opsets"]),
            rows=tuple(map(_row, data.get("operators", ()))),
            measured=data.get("measured", False),
            runs=data.get("runs", True),
            ir_version=data.get("ir_version", 99),
            dynamic=_word("dynamic", data.get("dynamic", "yes"), _DYNAMIC),
            folds=data.get("folds", True),
            works=frozenset(data.get("works", ())),
            types={kind: _type_table(table) for kind, table in data.get("types", {}).items()},
            date=data.get("date", ""),
            how=data.get("how", ""),
            placement=Placement.from_toml(data["quantization"]) if "quantization" in data else None,
        )
    except (KeyError, TypeError) as error:
        raise CompatError(f"target file {str(path)!r}: {error} is missing or of the wrong kind.") from error


def _row(data: dict[str, Any]) -> Row:
    verdict: Verdict = _word("verdict", data["verdict"], VERDICTS)
    when = {**data.get("when", {})}
    if not all(v.keys() == {"not"} and isinstance(v["not"], list) for v in when.values() if isinstance(v, dict)):
        raise TypeError(f"'when' of {data['op']}")
    return Row(data["op"], verdict, when, tuple(data.get("opset", (1, 99))), data.get("source", ""))


def _type_table(data: dict[str, Any]) -> dict[Verdict, frozenset[str]]:
    return {_word("verdict", verdict, VERDICTS): frozenset(operators) for verdict, operators in data.items()}


def _word(kind: str, text: str, known: tuple[str, ...]) -> Any:
    if text not in known:
        raise unknown_name(kind, text, known)
    return text


def to_toml(target: Target) -> str:
    """The profile of a target as TOML; the same text for the same target."""
    head: dict[str, Any] = {
        "name": target.name,
        "version": target.version,
        "measured": target.measured,
        **({} if target.runs else {"runs": False}),
        "date": target.date,
        "how": target.how,
        "opset": target.opset,
        "opsets": list(target.opsets),
        "ir_version": target.ir_version,
        "dynamic": target.dynamic,
        "folds": target.folds,
    }
    lines = [f"{key} = {_literal(value)}" for key, value in head.items() if value != ""]
    lines += ["works = [", *(f"    {_literal(op)}," for op in sorted(target.works)), "]"]
    if target.placement is not None:
        told = target.placement.to_toml()
        lines += ["", "[quantization]", *(f"{key} = {_literal(value)}" for key, value in told.items())]
    for kind, table in target.types.items():
        lines += ["", f"[types.{_key(kind)}]"]
        for verdict, operators in table.items():
            lines += [f"{verdict} = [", *(f"    {_literal(op)}," for op in sorted(operators)), "]"]
    for row in target.rows:
        lines += ["", "[[operators]]", f"op = {_literal(row.op_type)}", f"verdict = {_literal(row.verdict)}"]
        if row.when:
            lines.append(f"when = {_literal(dict(row.when))}")
        if row.opset != (1, 99):
            lines.append(f"opset = {_literal(list(row.opset))}")
        if row.source:
            lines.append(f"source = {_literal(row.source)}")
    return "\n".join(lines) + "\n"


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_literal, value)) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(k)} = {_literal(v)}" for k, v in value.items()) + " }"
    return repr(value)


def _key(name: str) -> str:
    return name if name.replace("_", "").isalnum() else _literal(name)
