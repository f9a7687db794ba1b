"""The scoreboard's pages are those of the committed rows."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[1]


def _script():
    spec = importlib.util.spec_from_file_location("scripts_scoreboard", ROOT / "scripts" / "scoreboard.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def test_the_pages_are_fresh():
    script = _script()
    rows = script.rows()
    assert rows
    assert script.PAGE.read_text(encoding="utf-8") == script.markdown(rows), "run python scripts/scoreboard.py"
    assert script.HTML.read_text(encoding="utf-8") == script.html(rows), "run python scripts/scoreboard.py"


def test_no_file_of_ours_is_wrong():
    assert [row.spec for row in _script().rows() if row.by == "ours" and row.verdict == "wrong"] == []


def test_text_is_plain_in_markdown():
    assert _script()._plain("a|b_<c>") == "a\\|b\\_\\<c\\>"
