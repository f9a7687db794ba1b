#!/usr/bin/env bash
# Builds the pages of docs/ as a site into build/site, and checks its links. Arguments go to mkdocs: `serve` shows it.
set -euo pipefail
cd "$(dirname "$0")/.."

venv="${VENV:-.venv-docs}"
if [ ! -e "$venv/.complete" ]; then
    "${PYTHON:-python3}" -m venv "$venv" >&2
    "$venv/bin/pip" install "mkdocs-material>=9.5" "mkdocstrings[python]>=0.27" >&2
    touch "$venv/.complete"
fi
exec "$venv/bin/mkdocs" "${@:-build}"
