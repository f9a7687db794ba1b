"""What holds of every entry, on both exporters: tests/symbolics and tests/rewrites have a row, or several, for each."""

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from torch_onnx_compat.catalogue.catalogue import catalogue
from torch_onnx_compat.catalogue.entry import Machinery
from torch_onnx_compat.testing import Example

TESTS = Path(__file__).parent
FAMILIES = sorted(path for folder in ("symbolics", "rewrites") for path in (TESTS / folder).glob("test_*.py"))


def examples(path: Path) -> list[Example]:
    """The rows of a family's test file, with the same random numbers in every process."""
    torch.manual_seed(0)
    name = f"rows_of_{path.stem.removeprefix('test_')}"
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)  # where rewrites of "*.function" look
    spec.loader.exec_module(module)
    return getattr(module, "EXAMPLES", [])


EXAMPLES = [row for path in FAMILIES for row in examples(path)]
EXPORTERS_OF = {id(row): row.needed_on() for row in EXAMPLES}
"""The exporters on which the entry of a row is armed, by row."""


def rows(exporters, where=lambda row: True):
    """Each row beside the exporters that it is tried on."""
    return pytest.mark.parametrize(
        ("row", "exporter"),
        [
            pytest.param(row, e, id=f"{row.entry}-{e}", marks=pytest.mark.slow if is_idle(row, e) else ())
            for row in EXAMPLES
            if where(row)
            for e in exporters(row)
        ],
    )


def is_idle(row, exporter):
    """Whether the entry of a row is armed on the other exporter only: here the row shows that torch does without it."""
    return exporter not in (EXPORTERS_OF[id(row)] or [exporter])


def test_every_entry_has_a_row():
    ours = {e.name for e in catalogue() if e.owner.startswith("torch_onnx_compat.") and not isinstance(e, Machinery)}
    assert {row.entry for row in EXAMPLES} == ours


@pytest.mark.one_exporter
@rows(lambda row: row.exporters)
def test_matches(row, exporter):
    row.assert_matches(exporter)


@rows(lambda row: (EXPORTERS_OF[id(row)] or row.exporters)[:1], where=lambda row: row.leaves is not None)
def test_leaves_alone(row, exporter):
    row.assert_leaves_alone(exporter)


@pytest.mark.slow
@rows(Example.claimed_on)
def test_still_needed(row, exporter):
    """What torch does without the entry, which changes with torch alone; scripts/still_needed.py asks for a table."""
    row.assert_still_needed(exporter)


@pytest.mark.slow
@rows(lambda row: EXPORTERS_OF[id(row)][:1])
def test_bites(row, exporter):
    row.assert_bites(exporter)


@pytest.mark.slow
@rows(lambda row: EXPORTERS_OF[id(row)][:1], where=lambda row: not row.declines)
def test_bites_for_its_body_alone(row, exporter):
    """A broken body is tried without the search for decisions; with the right one the file is right so, too."""
    replace(row, options={"control_flow": False, **row.options}).assert_matches(exporter)
