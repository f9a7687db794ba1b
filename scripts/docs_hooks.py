"""What MkDocs does besides: pages that lie outside of docs/, and the links that lead to them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
OUTSIDE = (
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    *(f"benchmarks/results/{p.name}" for p in ROOT.glob("benchmarks/results/*.md")),
)
"""Pages of the repository that the site has, too, at the same paths."""
_LINK = re.compile(r"(\]\()([^)\s#:]+)((?:#[^)\s]*)?\))")


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages from outside."""
    for path in OUTSIDE:
        files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Makes links fit the site, where docs/ is the root."""
    here = Path(page.file.src_uri)
    source = (ROOT if page.file.src_uri in OUTSIDE else ROOT / "docs") / here

    def fit(link: re.Match[str]) -> str:
        target = (source.parent / link[2]).resolve()
        if not target.is_relative_to(ROOT):
            return link[0]
        path = target.relative_to(ROOT).as_posix()
        path = path.removeprefix("docs/")
        up = "../" * (len(here.parts) - 1)
        return f"{link[1]}{up}{path}{link[3]}"

    return _LINK.sub(fit, markdown)
