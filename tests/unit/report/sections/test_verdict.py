import msgspec
import pytest

from pindiag import model as m
from pindiag.report import conclusions, names
from pindiag.report.sections.verdict import by_hand, main_fix, marks, next_step, training
from pindiag.report.view import view

from .. import example, live


def shown(report, spec=example.SPEC, drawing=example.NO_DRAWING):
    return view(report, drawing, spec)


def test_the_patch_is_that_of_the_recommendation():
    report = example.confirmed()
    fix = main_fix(report)
    assert fix is not None
    assert fix.patch == example.PATCH
    assert main_fix(example.no_difference()) is None
    assert main_fix(example.suspected()) is None


def test_a_long_patch_shows_its_first_hunk_and_keeps_the_rest():
    report = example.confirmed()
    long = example.PATCH + "@@ -40,1 +42,1 @@\n" + "".join(f"-old {n}\n+new {n}\n" for n in range(6))
    fix = msgspec.structs.replace(report.findings[0].fixes[0], patch=long)
    finding = msgspec.structs.replace(report.findings[0], fixes=[fix])
    patch = shown(msgspec.structs.replace(report, findings=[finding])).patch
    assert patch.heading == "Patch for train.py"
    assert [line for _, line in patch.first + patch.rest] == long.splitlines()
    assert patch.rest[0] == ("at", "@@ -22,3 +23,4 @@")


def test_what_cannot_be_patched_is_a_change_by_hand():
    report = example.confirmed()
    fix = msgspec.structs.replace(report.findings[0].fixes[0], patch=None, snippet="num_workers=0")
    finding = msgspec.structs.replace(report.findings[0], fixes=[fix])
    patch = shown(msgspec.structs.replace(report, findings=[finding])).patch
    assert (patch.heading, patch.first, patch.is_diff) == (
        "Change by hand at train.py:14",
        [("", "num_workers=0")],
        False,
    )


@pytest.mark.parametrize(
    ("make", "wanted"),
    [
        (example.confirmed, "pindiag run train.py --sweep --budget 10m"),
        (example.verified, None),
        (example.failed, None),
        (example.no_difference, None),
        (example.interrupted, "pindiag run train.py --sweep"),
        (example.suspected, "pindiag run train.py --sweep --budget 10m"),
    ],
)
def test_the_next_step(make, wanted):
    step = next_step(make(), example.SPEC)
    assert (step and step[1]) == wanted
    assert step is None or step[2] == step[1].startswith("pindiag run")


def test_a_modules_command_names_the_module():
    spec = msgspec.structs.replace(example.BASELINE_SPEC, module=True, target="package.train")
    assert next_step(example.cpu_baseline(), spec)[1] == "pindiag run -m package.train --sweep"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (example.confirmed, ["Cause confirmed", "Provisional:", "Not verified"]),
        (example.verified, ["Cause confirmed", "Gain verified"]),
        (example.no_difference, ["No difference", "Nothing to gain", "Nothing to verify"]),
        (example.suspected, ["Cause suspected:", "No gain claimed", "Nothing to verify"]),
        (example.failed, ["Failure confirmed", "No gain claimed", "Nothing to verify"]),
        (example.empty, ["No cause shown", "No gain claimed", "Nothing to verify"]),
    ],
)
def test_how_sure(make, words):
    report = make()
    assert [mark.word for mark in marks(report, names.primary_finding(report))] == words


def test_a_worker_that_died_confirms_the_failure():
    finding = msgspec.structs.replace(example.failed().findings[0], cause="worker_crash")
    assert marks(example.failed(), finding)[0].more == "by what a worker died of"


def test_pairs_that_do_not_show_the_gain_are_said():
    report = example.verified()
    poor = msgspec.structs.replace(report.verification, ratio=1.02, ci95=(0.9, 1.15))
    report = msgspec.structs.replace(report, verification=poor)
    assert marks(report, None)[2].word == "Not borne out"
    assert conclusions.verification(poor) == "4 fresh pairs do not settle it: 1.02 × (0.90–1.15)"


def test_two_pairs_that_agree_are_a_beginning():
    report = example.verified()
    short = msgspec.structs.replace(report.verification, pairs=2, ratio=1.4, ci95=None)
    report = msgspec.structs.replace(report, verification=short)
    assert marks(report, None)[2].word == "Verified in part"


def test_asking_for_too_few_rounds_is_answered_with_rounds():
    spec = msgspec.structs.replace(example.SPEC, rounds=3)
    assert next_step(example.confirmed(), spec)[1] == "pindiag run train.py --sweep --rounds 6"


def test_after_all_rounds_a_suspicion_names_its_experiment():
    report = example.suspected()
    blocks = report.blocks + [msgspec.structs.replace(block, round=block.round + 4) for block in report.blocks]
    step = next_step(msgspec.structs.replace(report, blocks=blocks), example.SPEC)
    assert step == ("Would settle it:", "drain the loader with and without pin thread", False)


def test_nothing_to_gain_is_said_only_where_it_is_shown():
    report = example.no_difference()
    undecided = msgspec.structs.replace(report, findings=[])
    assert marks(undecided, None)[1].word == "No gain shown"
    assert shown(undecided).why_nothing == "no gain was shown"
    assert shown(report).why_nothing == "the settings as written are as good as any that was tried"


def test_no_difference_is_said_to_be_shown_only_where_it_is():
    finding = names.primary_finding(example.no_difference())
    assert marks(example.no_difference(), finding)[0].word == "No difference"
    for status in ("ruled_out", "not_settled"):
        other = msgspec.structs.replace(finding, status=status)
        assert marks(example.no_difference(), other)[0].word == "No cause shown"


def test_where_live_and_fresh_disagree_a_mark_of_its_own_has_both_ratios():
    said = marks(live.disagrees(), None)
    assert [mark.word for mark in said[1:]] == ["Provisional:", "Verified", "Live and fresh disagree:"]
    assert said[3].more == "1.43 × (1.11–1.85) live, 1.08 × (1.07–1.09) fresh; fresh decides"
    assert [mark.word for mark in marks(live.agrees(), None)[1:]] == ["Gain verified"]


def test_a_line_of_code_is_the_patch_where_it_removes_the_cause():
    report = live.threads_lost()
    assert main_fix(report).patch == live.THREADS_PATCH
    said = marks(report, names.primary_finding(report))
    assert [(mark.word, mark.more) for mark in said[1:]] == [
        ("Gain measured", "in 6 rounds beside the script as written"),
        ("Not verified", "in fresh pairs"),
    ]


def test_bars_of_training_name_what_differs():
    lost = live.threads_lost()
    assert [label for label, _ in training(lost)] == ["Training as written", "Training, line of code added"]
    assert [label for label, _ in training(live.live())] == ["Training as written", "Training, recommended"]


@pytest.mark.parametrize("ahead", [live.THREADS, f"{example.BEST}+intraop_threads"])
def test_each_alone_and_both_have_a_bar_whichever_leads(ahead):
    report, both = live.threads_lost(), f"{example.BEST}+intraop_threads"
    alone, best = (next(one for one in report.trials if one.id == name) for name in (live.THREADS, example.BEST))
    tried = msgspec.structs.replace(alone, id=both, configuration=best.configuration)
    made = msgspec.structs.replace(report.recommendation, trial=best.id, tweak=ahead)
    report = msgspec.structs.replace(report, trials=[*report.trials, tried], recommendation=made)
    assert [(label, one.id) for label, one in training(report)] == [
        ("Training as written", report.baseline),
        ("Training, best loader settings", best.id),
        ("Training, line of code added", live.THREADS),
        ("Training, both", both),
    ]


def test_a_line_of_code_with_settings_that_are_not_the_best_says_so():
    report = live.threads_lost()
    other = next(one for one in report.trials if one.id == "nw4-pin1-nb1")
    trials = [
        msgspec.structs.replace(one, configuration=other.configuration) if one.id == live.THREADS else one
        for one in report.trials
    ]
    made = msgspec.structs.replace(report.recommendation, trial=example.BEST)
    shown = training(msgspec.structs.replace(report, trials=trials, recommendation=made))
    assert [label for label, _ in shown] == [
        "Training as written",
        "Training, best loader settings",
        "Training, other settings and line of code",
    ]


def test_a_suspected_line_of_code_is_no_patch():
    report = live.threads_lost()
    suspected = msgspec.structs.replace(report.findings[0], status="suspected")
    recommended = msgspec.structs.replace(report.recommendation, fix=None, tweak=None)
    assert main_fix(msgspec.structs.replace(report, findings=[suspected], recommendation=recommended)) is None


def test_what_a_confirmed_finding_asks_for_is_the_patch_where_no_configuration_is_recommended():
    report = live.threads_lost()
    recommended = msgspec.structs.replace(report.recommendation, fix=None, tweak=None)
    small = msgspec.structs.replace(report, recommendation=recommended)
    assert main_fix(small).patch == live.THREADS_PATCH
    finding = report.findings[0]
    predicted = msgspec.structs.replace(
        finding.fixes[0], effect=msgspec.structs.replace(finding.fixes[0].effect, kind="predicted")
    )
    only = msgspec.structs.replace(small, findings=[msgspec.structs.replace(finding, fixes=[predicted])])
    assert main_fix(only) is None


def test_a_verified_line_of_code_has_one_mark_and_an_unverified_one_says_what_the_pairs_tried():
    report = live.threads_lost()
    fix = msgspec.structs.replace(
        report.recommendation.fix, effect=m.Effect(kind="verified", ratio=3.0, ci95=(2.8, 3.2))
    )
    pairs = msgspec.structs.replace(live.agrees().verification, trial=live.THREADS, ratio=3.0, ci95=(2.8, 3.2))
    recommended = msgspec.structs.replace(report.recommendation, fix=fix)
    verified = msgspec.structs.replace(report, recommendation=recommended, verification=pairs)
    said = marks(verified, names.primary_finding(verified))
    assert (said[1].level, said[1].word) == ("full", "Gain verified")
    assert len(said) == len(marks(report, names.primary_finding(report))) - 1
    other = msgspec.structs.replace(report, verification=live.agrees().verification)
    assert marks(other, None)[2].word == "Not verified:"
    assert "the loader's settings alone" in marks(other, None)[2].more


def test_the_first_chart_has_ceilings_where_they_were_measured():
    assert shown(live.live()).first_chart.title == "Only the pin thread is as slow as training"
    assert shown(example.confirmed()).first_chart.title == "“no workers, pin, non_blocking” trains fastest"


def test_what_a_patch_does_not_hold_stands_below_it():
    fix = example.confirmed().findings[0].fixes[0]
    both = msgspec.structs.replace(fix, snippet="num_workers=0  # it comes from `args.workers`\npin_memory=True")
    assert by_hand(both) == [("num_workers=0", "it comes from `args.workers`"), ("pin_memory=True", "")]
    assert by_hand(msgspec.structs.replace(both, patch=None)) == []


def test_what_is_faster_and_unsafe_is_no_gain_that_was_not_shown():
    assert shown(example.unsafe()).why_nothing == "what is faster is not safe"
