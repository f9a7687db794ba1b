"""Signals of the brain and of muscles: the models of braindecode."""

from __future__ import annotations

import torch
from torch import nn

from unseen_models.table import add, load

CHANNELS, SAMPLES, HERTZ = 8, 1000, 250

NAMES = """
ATCNet AttentionBaseNet BIOT CBraMod ContraWR CTNet Deep4Net DeepSleepNet DGCNN EEGConformer EEGInceptionERP
EEGInceptionMI EEGITNet EEGMiner EEGNet EEGNeX EEGPT EEGSimpleConv EEGSym EEGTCNet FBCNet FBLightConvNet FBMSNet IFNet
LUNA MEDFormer MSVTNet SCCNet ShallowFBCSPNet SignalJEPA SincShallowNet SleepStagerBlanco2020 SleepStagerChambon2018
SPARCNet SSTDPN SyncNet TCFormer TIDNet TSception EEGDINO CodeBrain STEEGFormer MVPFormer
"""


def _model(name: str) -> nn.Module:
    kind = getattr(load("braindecode.models"), name)
    options = {
        "n_chans": CHANNELS,
        "n_outputs": 4,
        "n_times": SAMPLES,
        "sfreq": HERTZ,
        "input_window_seconds": SAMPLES // HERTZ,
    }
    try:
        made: nn.Module = kind(**options)
    except (TypeError, ValueError):  # some want to know where the electrodes are
        names = ("Fp1", "Fp2", "F3", "F4", "C3", "C4", "P3", "P4")
        places = [{"ch_name": one, "loc": torch.rand(12).numpy(), "kind": "eeg"} for one in names]
        made = kind(**options, chs_info=places)
    return made


for _name in NAMES.split():
    add("braindecode", _name, lambda name=_name: _model(name), lambda n: torch.randn(n, CHANNELS, SAMPLES))
