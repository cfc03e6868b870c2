"""accuracy.py judges reports by samples/truth.toml, and is right about every recording."""

from __future__ import annotations

import json

import accuracy
import pytest
from recordings import Truth, recordings

from pindiag.model import Finding

TRUTH = Truth(cause="cpu_bound", accept=["cpu_bound"], also=["second_loader"], never=["io_bound"], helps=[])
HEALTHY = Truth(cause="compute_bound", accept=["compute_bound", "no_difference"], never=["io_bound"], helps=[])


def finding(cause: str, status: str = "confirmed") -> Finding:
    reason = "no batch of it was seen" if status == "not_applicable" else None
    return Finding(
        rule="PD100", cause=cause, status=status, severity=None, title="It is so", explanation="", reason=reason
    )


class Shown:
    """As much of a report as is judged."""

    def __init__(self, first: str, *findings: Finding) -> None:
        self.verdict = type("Verdict", (), {"primary_cause": first})
        self.findings = [finding(first), *findings]


def judged(truth: Truth, *shown: object) -> dict[str, object]:
    return accuracy.case("rows", "cpu", truth, Shown(*shown))


def test_right_is_what_is_accepted_names_what_else_holds_and_accuses_nothing():
    case = judged(TRUTH, "cpu_bound", finding("second_loader", "suspected"), finding("io_bound", "ruled_out"))
    assert (case["right"], case["accepted"], case["never"], case["why"]) == (True, True, [], None)
    assert (case["cause"], case["status"]) == ("cpu_bound", "confirmed")


@pytest.mark.parametrize(
    ("shown", "why"),
    [
        (["small_batch", finding("second_loader")], "small_batch stands first instead of cpu_bound"),
        (
            ["cpu_bound", finding("second_loader"), finding("io_bound")],
            "io_bound is confirmed, which does not hold",
        ),
        (["cpu_bound"], "second_loader was not looked for, but holds too"),
        (
            ["cpu_bound", finding("second_loader", "not_applicable")],
            "second_loader is not applicable (no batch of it was seen), but holds too",
        ),
    ],
)
def test_a_case_says_what_is_wrong(shown, why):
    case = judged(TRUTH, *shown)
    assert (case["right"], case["why"]) == (False, why)


def test_of_a_healthy_sample_any_other_cause_of_slowness_is_a_false_accusation_and_a_fact_is_none():
    assert judged(HEALTHY, "compute_bound", finding("worker_contention"))["never"] == ["worker_contention"]
    assert judged(HEALTHY, "compute_bound", finding("known_bad_version"))["never"] == []


def test_false_accusations_are_counted_apart_from_what_is_right():
    cases = [
        judged(HEALTHY, "compute_bound"),
        judged(HEALTHY, "small_batch"),
        judged(TRUTH, "cpu_bound", finding("second_loader"), finding("io_bound")),
    ]
    made = accuracy.summary(cases)
    assert (made["right"], made["total"], made["false_accusations"]) == (1, 3, 2)


def test_a_run_without_a_report_is_not_right():
    case = accuracy.unmade("rows", "cpu", "no report, exit code 4: it broke")
    assert case.keys() == judged(HEALTHY, "compute_bound").keys()
    assert (case["right"], case["why"]) == (False, "no report, exit code 4: it broke")


def test_an_unknown_sample_is_refused(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["accuracy.py", "rows"])
    with pytest.raises(SystemExit, match="2"):
        accuracy.main()
    assert "knows no rows" in capsys.readouterr().err


def test_what_was_judged_before_it_is_cut_short_is_printed(monkeypatch, capsys):
    def cut_short(*_: object):
        yield judged(HEALTHY, "compute_bound")
        raise KeyboardInterrupt

    monkeypatch.setattr("sys.argv", ["accuracy.py", "--recorded"])
    monkeypatch.setattr(accuracy, "recorded", cut_short)
    with pytest.raises(KeyboardInterrupt):
        accuracy.main()
    printed = json.loads(capsys.readouterr().out)
    assert (printed["right"], printed["total"], printed["cut_short"]) == (1, 1, "KeyboardInterrupt")


def test_what_several_processes_wrote_is_merged(monkeypatch, capsys, tmp_path):
    shown = {"one": judged(HEALTHY, "compute_bound"), "two": judged(HEALTHY, "small_batch")}
    for name, case in shown.items():
        (tmp_path / name).write_text(json.dumps(accuracy.summary([case])))
    monkeypatch.setattr("sys.argv", ["accuracy.py", "--merge", *(str(tmp_path / name) for name in shown)])
    accuracy.main()
    printed = capsys.readouterr()
    assert json.loads(printed.out) == accuracy.summary(list(shown.values()))
    assert "rows (cpu): small_batch confirmed; wrong: " in printed.err


@pytest.fixture(scope="module")
def recorded() -> dict[str, object]:
    return accuracy.summary(list(accuracy.recorded([])))


def test_every_recording_of_a_sample_is_judged(recorded):
    judged_ones = {case["recording"] for case in recorded["cases"]}
    assert judged_ones == {each.name for each in recordings()}


def test_no_recording_accuses_what_does_not_hold(recorded):
    assert {case["recording"]: case["never"] for case in recorded["cases"] if case["never"]} == {}
    assert recorded["false_accusations"] == 0


def test_it_is_right_about_every_recording(recorded):
    assert {case["recording"]: case["why"] for case in recorded["cases"] if not case["right"]} == {}
    assert recorded["right"] == recorded["total"] >= 12
