"""Planted faults are found: a sample of what scripts/sensitivity.py plants."""

import pytest

from fuzz.sensitivity import SMALL, Fault, export_right, judge, plant

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")

KINDS = {
    "mlp": ("channel 5 % off", "bias off", "axis"),
    "lstm": ("size frozen", "channel 5 % off", "bias off"),
    "decode": ("size frozen", "concat swapped", "padding", "bias off"),
    "unet": ("resize mode", "resize grid", "other operator", "padding", "concat swapped"),
    "attention": ("size frozen", "axis", "bias off"),
    "branches": ("axis", "bias off", "channel 5 % off"),
    "prompted": ("branch frozen", "channel 5 % off", "axis"),
    "policy": ("other operator", "bias off", "channel 5 % off"),
    "key points": ("other operator", "bias off", "channel 5 % off"),
}
"""For each model some kinds of fault; a model has no place for some."""


@pytest.mark.parametrize("subject", SMALL, ids=lambda subject: subject.name)
def test_faults_are_found_and_the_right_file_passes(subject):
    right = export_right(subject)
    unchanged = judge(right, Fault("none", "", right.model))
    assert (unchanged.found, unchanged.change) == (False, 0.0), unchanged.why
    verdicts = [judge(right, fault) for fault in plant(right, 1) if fault.kind in KINDS[subject.name]]
    assert len(verdicts) >= 2
    assert [v.fault for v in verdicts if v.word == "MISSED"] == []
    assert sum(v.found for v in verdicts) >= 0.6 * len(verdicts)


def test_a_fault_that_verification_does_not_find_is_measured():
    """A weight off by a thousandth of a thousandth is below the tolerance, and not missed."""
    right = export_right(SMALL[0])
    fault = next(f for f in plant(right, 1) if f.kind == "float16 weight")
    verdict = judge(right, fault)
    assert verdict.word == "below tolerance"
    assert verdict.change > 10
    assert 0.01 < verdict.tolerances < 1
