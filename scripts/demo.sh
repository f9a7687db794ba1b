#!/usr/bin/env bash
# Exports torchvision's raft_small with a dynamic batch, verified, into demo/raft_small.onnx.
set -euo pipefail
cd "$(dirname "$0")/.."

venv="$(bash scripts/venv.sh)"
mkdir -p demo
exec "$venv/bin/torch-onnx-compat" export torchvision:raft_small --dynamic batch --output demo/raft_small.onnx "$@"
