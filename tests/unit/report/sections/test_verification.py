import msgspec
import pytest

from pindiag.report import conclusions
from pindiag.report.sections.verification import verified

from .. import example, live


def test_live_and_fresh_stand_side_by_side():
    report = live.disagrees()
    one_process, pairs = verified(report).sides
    assert (one_process.words, pairs.words) == ("live, in one process", "fresh pairs")
    by_id = {trial.id: trial.samples_per_second.median for trial in report.trials if trial.samples_per_second}
    assert (one_process.baseline, one_process.recommended) == (by_id[example.BASELINE], by_id[example.BEST])
    assert (pairs.baseline, pairs.recommended) == (3275.0, 3530.0)
    assert one_process.ratio.ratio == report.verification.live_ratio
    assert one_process.ratio.rounds == 4
    assert pairs.ratio.ratio == report.verification.ratio
    assert verified(report).agreement.startswith("The live ratio differs")
    assert verified(live.agrees()).agreement.startswith("Live and fresh agree")


def test_a_trial_judged_by_fresh_rounds_keeps_the_rate_of_its_live_blocks():
    report = live.agrees()
    trials = [msgspec.structs.replace(one, isolation="fresh", samples_per_second=None) for one in report.trials]
    side = verified(msgspec.structs.replace(report, trials=trials)).sides[0]
    blocks = [b for b in report.blocks if b.trial == example.BEST and b.purpose != "verify"]
    rates = sorted(block.samples / block.seconds for block in blocks)
    assert side.recommended == pytest.approx((rates[1] + rates[2]) / 2)


def test_without_live_rounds_the_fresh_ones_stand_there():
    sides = verified(example.verified()).sides
    assert [side.words for side in sides] == ["fresh, the rounds that chose it", "fresh pairs"]
    assert "was not measured: there was no live ratio" in verified(example.verified()).agreement
    assert verified(example.confirmed()) is None


def test_whole_epochs_are_said_and_compared_over_the_same_part():
    report = live.agrees()
    assert "one block of steps" in verified(report).covers
    told = {"epochs": 2, "steady_ratio": 1.41, "steady_ci95": (1.3, 1.5)}
    report = msgspec.structs.replace(report, verification=msgspec.structs.replace(report.verification, **told))
    shown = verified(report)
    assert "2 whole epochs" in shown.covers
    assert "over the same part of the epochs (1.41 × (1.30–1.50))" in shown.agreement
    assert "4 fresh pairs of 2 whole epochs each" in conclusions.verification(report.verification)
