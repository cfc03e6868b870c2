import msgspec

from pindiag import model as m
from pindiag.report.sections import method

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
