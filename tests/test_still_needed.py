"""The script that looks for superfluous entries finds those, and no others."""

import importlib.util
from pathlib import Path
from types import SimpleNamespace

import pytest

PATH = Path(__file__).parents[1] / "scripts" / "still_needed.py"


def row(entry, **needed):
    def check(exporter):
        assert needed[exporter], f"torch is right without {entry} on {exporter}"

    return SimpleNamespace(entry=entry, claimed_on=lambda: list(needed), assert_still_needed=check)


@pytest.fixture
def script(monkeypatch):
    spec = importlib.util.spec_from_file_location("still_needed", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made = [
        row("kept", torchscript=True, dynamo=True),
        row("half", torchscript=True, dynamo=False),
        row("of_two_rows", dynamo=False),
        row("of_two_rows", dynamo=True),  # one row needs it, so it stays
        row("gone", torchscript=False),
    ]
    monkeypatch.setattr(module, "rows", lambda: made)
    return module


def test_superfluous_entries_are_told(script, capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["still_needed.py"])
    assert script.main() == 1
    assert capsys.readouterr().out.splitlines() == [
        "gone: not needed on torchscript: torch is right without gone on torchscript",
        "half: not needed on dynamo: torch is right without half on dynamo",
    ]


def test_nothing_to_tell(script, capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["still_needed.py", "kept"])
    assert script.main() == 0
    assert "every entry is needed" in capsys.readouterr().out
