#!/usr/bin/env bash
# Prints the path of the project's virtual environment; makes it first where it is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

venv="${VENV:-.venv}"
if [ ! -e "$venv/.complete" ]; then
    "${PYTHON:-python3}" -m venv "$venv" >&2
    "$venv/bin/pip" install -e ".[dev]" >&2
    touch "$venv/.complete"  # an interrupted installation is done again
fi
echo "$venv"
