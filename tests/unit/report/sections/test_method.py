import msgspec

from pindiag import model as m
from pindiag.report import names
from pindiag.report.sections import method, verdict

from .. import example, live


def test_gaps_of_one_reason_stand_together():
    report = msgspec.structs.replace(
        example.confirmed(),
        not_measured=[
            *(m.NotMeasured(key=f"trials[{n}].gpu.copy_ms", reason="no trace") for n in range(5)),
            m.NotMeasured(key="trials[0].epoch_s", reason="no length"),
            m.NotMeasured(key="trials[1].epoch_s", reason="no length"),
            m.NotMeasured(key="launches[0].epochs", reason="no length"),
            m.NotMeasured(key="verification", reason="no budget"),
        ],
    )
    first, second = report.trials[0].id, report.trials[1].id
    assert method.gaps(report) == [
        ("gpu: copy ms (5 times)", "no trace"),
        (f"epoch s ({first}, {second}); epochs (launch 1)", "no length"),
        ("verification", "no budget"),
    ]


def test_all_that_was_not_run_for_one_reason_is_one_line():
    report, why = example.confirmed(), "predicted at most 90 samples/s"
    trials = [msgspec.structs.replace(one, status="skipped", reason=why) for one in report.trials]
    keys = [f"trials[{n}].{key}" for n in range(2) for key in ("gpu", "epoch_s", "stage_ms.wait")]
    gaps = [m.NotMeasured(key=key, reason=why) for key in keys]
    report = msgspec.structs.replace(report, trials=trials, not_measured=gaps)
    assert method.gaps(report) == [(f"all figures ({trials[0].id}, {trials[1].id})", why)]


def test_launches_are_counted_by_what_they_were_for():
    assert method.launches(live.agrees()) == (
        "2 launches ran live: blocks of many treatments in one process, in random order; "
        "1 launch only read how many threads the main process of a fresh start has; "
        "8 launches ran fresh to verify the recommendation, in alternating order with the script as written."
    )
    assert method.heading(live.agrees()) == "113 blocks of 26 treatments in 11 launches"


def test_a_fresh_run_speaks_of_fresh_launches_alone():
    report = example.confirmed()
    assert method.launches(report) == "48 launches ran fresh: one treatment each, in a process of its own."
    assert method.order(report).startswith("Every launch runs one treatment")
    assert method.order(live.live()).startswith("Each round runs every configuration, ceiling and tweak once")


def of_run(name, value):
    return m.Fact(name=name, value=value, unit=None, trial=None, source="samples of 22 blocks")


def test_what_limited_the_measurement_is_said_in_sentences():
    report = example.confirmed()
    assert method.limits(report) == []
    quiet = [of_run("disturbed_blocks", 0), of_run("disturbances", "nothing was seen")]
    assert method.limits(msgspec.structs.replace(report, facts=quiet)) == []
    busy = [
        of_run("disturbed_blocks", 4),
        of_run("disturbances", "others used 1.3 of 2 CPUs"),
        of_run("block_length", "x"),
    ]
    assert method.limits(msgspec.structs.replace(report, facts=busy)) == ["Others used 1.3 of 2 CPUs.", "X."]


def test_a_busy_machine_is_said_on_the_first_screen():
    report = example.confirmed()
    finding = names.primary_finding(report)
    assert all(mark.word != "Busy machine:" for mark in verdict.marks(report, finding))
    busy = [of_run("disturbed_as_usual", True), of_run("disturbed_blocks_share", 0.5)]
    marks = verdict.marks(msgspec.structs.replace(report, facts=busy), finding)
    assert (marks[-1].word, marks[-1].more) == ("Busy machine:", "something from outside disturbed 50 % of the blocks")
