"""Loaders that do not train, over launches that never ran."""

from __future__ import annotations

from functools import partial

import pytest

from pindiag.analysis import analyse
from pindiag.analysis.other_loaders import BESIDE, NEVER_READ, NO_EPOCH, NO_OTHERS, NOT_BESIDE, NOT_WHOLE
from pindiag.model import LoaderChosen, LoaderKey, LoaderMade, LoaderSeen
from pindiag.plan.schedule import next_order

VALIDATION = LoaderKey(location="/home/ann/train.py:40", ordinal=0)


@pytest.fixture
def found(script, spec, loader_arguments):
    """The analysis of a run in whose launches another loader is made, and passed through as told."""

    def run(*passages, key=VALIDATION, measured=True):
        fake = script(baseline=loader_arguments(), hangs=() if measured else ("nw4-pin0",))
        fake.machine()
        fake.play(partial(next_order, spec()))
        records = []
        for record in fake.records:
            at = {"launch": record.launch, "t_ns": record.t_ns}
            if isinstance(record, LoaderMade):
                kind = {"class_name": "DataLoader", "dataset_class": "Held", "configuration": loader_arguments()}
                records.append(LoaderMade(**at, loader=7, key=key, **kind))
            records.append(record)
            if isinstance(record, LoaderChosen):
                records += [LoaderSeen(**at, loader=7, iterator=3, **passage) for passage in passages]
                records.append(LoaderSeen(**at, loader=1, iterator=0, batches=1, wait_ms=9e9, seconds=9.0, whole=True))
        return analyse(spec(), records, fake.batches, {}, {})

    return run


def facts(analysis):
    return {fact.name: fact for fact in analysis.facts if fact.trial is None}


def test_a_validation_that_was_seen_whole(found):
    analysis = found(
        {"batches": 10, "wait_ms": 50.0, "seconds": 2.0, "whole": True},
        {"batches": 5, "wait_ms": 40.0, "seconds": 0.5, "whole": False},
    )
    (other,) = analysis.loader.beside
    epoch_s = analysis.trials[0].epoch_s
    assert (other.location, other.dataset_class, other.reason) == (VALIDATION.location, "Held", None)
    assert other.wait_ms == pytest.approx(90 / 15)
    assert other.pass_s == 2.0
    assert other.epoch_share == pytest.approx(2 / (2 + epoch_s))
    told = facts(analysis)
    assert told["other_loader_epoch_share"].value == other.epoch_share
    assert told["other_loader_epoch_share"].source == f"whole passes through {VALIDATION.location}"
    assert told["other_loader_wait_ms"].value == other.wait_ms
    assert other.wait_share == pytest.approx(0.05 / 2)
    waits = told["other_loader_epoch_wait_share"]
    assert waits.value == pytest.approx(other.epoch_share * 0.05 / 2)
    assert waits.source == f"whole passes: {VALIDATION.location}"
    assert told["other_loader_step_wait_share"].reason == NOT_BESIDE


@pytest.mark.parametrize(
    ("passages", "reason"),
    [
        ([], NEVER_READ),
        ([{"batches": 2, "wait_ms": 1.0, "seconds": 1.0, "whole": False}], NOT_WHOLE),
        ([{"batches": 9, "wait_ms": 1.0, "seconds": 1.0, "whole": True, "training_batches": 9}], BESIDE),
    ],
)
def test_what_is_missing_has_its_reason(found, passages, reason):
    analysis = found(*passages)
    (other,) = analysis.loader.beside
    assert (other.epoch_share, other.pass_s, other.reason) == (None, None, reason)
    assert (other.wait_ms is None) == (not passages)
    gaps = {gap.key: gap.reason for gap in analysis.not_measured}
    assert gaps["loader.beside[0].epoch_share"] == reason
    assert facts(analysis)["other_loader_epoch_share"].reason == reason


def test_one_that_is_read_in_each_step(found):
    analysis = found({"batches": 9, "wait_ms": 9.0, "seconds": 1.0, "whole": True, "training_batches": 18})
    (other,) = analysis.loader.beside
    told = {(fact.name, fact.trial): fact for fact in analysis.facts}
    assert other.step_wait_ms == pytest.approx(0.5)
    share = told["other_loader_step_wait_share", None]
    assert share.value == pytest.approx(0.5 / told["step_ms", analysis.baseline].value)
    assert share.source == f"batches beside training: {VALIDATION.location}"
    assert told["other_loader_epoch_wait_share", None].reason == BESIDE


def test_why_nothing_is_said_of_steps(found):
    analysis = found({"batches": 10, "wait_ms": 50.0, "seconds": 2.0, "whole": True})
    gaps = {gap.key: gap.reason for gap in analysis.not_measured}
    assert gaps["loader.beside[0].step_wait_ms"] == NOT_BESIDE


def test_no_other_loader(found):
    made_again_to_train = LoaderKey(location="/home/ann/train.py:14", ordinal=9)
    analysis = found(key=made_again_to_train)
    assert analysis.loader.beside == []
    assert facts(analysis)["other_loader_wait_ms"].reason == NO_OTHERS


def test_two_loaders_made_on_one_line(found):
    (other,) = found(
        {"batches": 2, "wait_ms": 1.0, "seconds": 1.0, "whole": False},
        key=LoaderKey(location="/home/ann/train.py:14", ordinal=1),
    ).loader.beside
    assert other.batches > 0


def test_an_epoch_that_was_not_measured(found):
    analysis = found({"batches": 10, "wait_ms": 50.0, "seconds": 2.0, "whole": True}, measured=False)
    (other,) = analysis.loader.beside
    assert (other.pass_s, other.epoch_share, other.reason) == (2.0, None, NO_EPOCH)
