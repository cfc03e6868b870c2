import msgspec

from pindiag.report.sections import beyond

from .. import live


def test_a_tweak_that_gains_stands_with_its_line_of_code():
    threads, lazy = sorted(beyond.changes(live.threads_lost()), key=lambda one: not one.gains)
    assert (threads.words, threads.code, threads.location) == (
        "The main thread keeps its threads",
        ["torch.set_num_threads(torch.get_num_threads())"],
        "train.py:20",
    )
    assert (lazy.words, lazy.code, lazy.gains) == ("No step waits for the device", [], False)
    assert beyond.heading([threads, lazy]) == "A line of code brings 3.10 × (2.84–3.39), with the arguments as written"


def test_where_nothing_gains_the_heading_says_so():
    assert beyond.heading(beyond.changes(live.live())) == (
        "Nothing that was tried beyond the loader's arguments is shown to be worth a line of code"
    )


def test_what_no_diff_can_hold_is_a_snippet():
    report = live.threads_lost()
    fix = msgspec.structs.replace(report.findings[0].fixes[0], patch=None, snippet="a\nb")
    finding = msgspec.structs.replace(report.findings[0], fixes=[fix])
    changes = beyond.changes(msgspec.structs.replace(report, findings=[finding]))
    assert [one.code for one in changes if one.gains] == [["a", "b"]]
