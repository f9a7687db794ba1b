#!/usr/bin/env bash
# Runs the tests in the project's virtual environment; arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."

venv="$(bash scripts/venv.sh)"
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"  # one process per core; torch's own threads would only fight over them
exec "$venv/bin/pytest" -n "${WORKERS:-auto}" "$@"
