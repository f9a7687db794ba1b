"""What MkDocs does besides: pages that lie outside of docs/, a list of the decisions, and the links to both."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
RESULTS = sorted((ROOT / "benchmarks" / "results").glob("*.md"))
OUTSIDE = ("CONTRIBUTING.md", "CHANGELOG.md", *(page.relative_to(ROOT).as_posix() for page in RESULTS))
"""Pages of the repository that the site has, too, at the same paths."""
_LINK = re.compile(r"(\]\()([^)\s#:]+)((?:#[^)\s]*)?\))")


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages from outside."""
    for path in OUTSIDE:
        files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    files.append(File.generated(config, "decisions/index.md", content=_decisions()))
    return files


def _decisions() -> str:
    """A page that lists the decisions."""
    lines = ["# Decisions", ""]
    for page in sorted((ROOT / "docs" / "decisions").glob("*.md")):
        title = page.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
        lines.append(f"* [{title}]({page.name})")
    return "\n".join([*lines, ""])


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Makes links fit the site, where docs/ is the root."""
    here = Path(page.file.src_uri)
    source = (ROOT if page.file.src_uri in OUTSIDE else ROOT / "docs") / here

    def fit(link: re.Match[str]) -> str:
        target = (source.parent / link[2]).resolve()
        if not target.exists() or not target.is_relative_to(ROOT):
            return link[0]
        path = target.relative_to(ROOT).as_posix().removeprefix("docs/")
        if target.is_dir():
            path = "decisions/index.md" if path == "decisions" else f"{path}.md"  # the page on that folder's data
        return f"{link[1]}{'../' * (len(here.parts) - 1)}{path}{link[3]}"

    return _LINK.sub(fit, markdown)
