import dataclasses

import msgspec

from pindiag import model as m
from pindiag.report.sections import beyond

from .. import example, live


def test_a_tweak_that_helps_stands_with_its_line_of_code():
    threads, lazy = sorted(beyond.changes(live.threads_lost()), key=lambda one: not one.helps)
    assert (threads.words, threads.code, threads.over_own) == (
        "The main thread keeps its threads",
        ["torch.set_num_threads(torch.get_num_threads())"],
        None,
    )
    assert (lazy.words, lazy.code, lazy.helps) == ("No step waits for the device", [], False)
    assert beyond.heading([threads, lazy]) == "A line of code brings 3.10 × (2.84–3.39)"


def test_where_nothing_helps_the_heading_says_so():
    assert beyond.heading(beyond.changes(live.live())) == (
        "Nothing that was tried beyond the loader's arguments is shown to be worth a line of code"
    )


def test_what_no_diff_can_hold_is_a_snippet():
    report = live.threads_lost()
    fix = msgspec.structs.replace(report.findings[0].fixes[0], patch=None, snippet="a\nb")
    finding = msgspec.structs.replace(report.findings[0], fixes=[fix])
    changes = beyond.changes(msgspec.structs.replace(report, findings=[finding]))
    assert [one.code for one in changes if one.helps] == [["a", "b"]]


def test_a_tweak_of_another_configuration_is_held_against_that_one_too():
    report = live.live()
    other = next(one for one in report.trials if one.id == "nw4-pin1-nb1")
    gain = m.Ratio(ratio=2 * other.versus_baseline.ratio, ci95=None, rounds=2)
    trials = [
        msgspec.structs.replace(one, configuration=other.configuration, versus_baseline=gain)
        if one.id == live.THREADS
        else one
        for one in report.trials
    ]
    changed = msgspec.structs.replace(report, trials=trials)
    threads = next(one for one in beyond.changes(changed) if one.trial.id == live.THREADS)
    assert threads.words == "The main thread keeps its threads, with 4 workers, pin, non_blocking"
    assert threads.over_own == 2
    helping = dataclasses.replace(threads, helps=True)
    assert beyond.heading([helping]).startswith("A line of code with other settings brings ")
    assert beyond.untweaked(changed, threads.trial) is other
    assert beyond.untweaked(report, report.trials[0]).id == report.trials[0].id
    assert beyond.untweaked(example.empty(), threads.trial) is None
