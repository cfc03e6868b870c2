import msgspec
import pytest

from pindiag import model as m
from pindiag.report import names
from pindiag.report.ceilings import ceilings
from pindiag.report.sections import why
from pindiag.report.text import Linker

from .. import example, live


def asked(report):
    found = ceilings(report, names.primary_finding(report))
    return {one.question: one for one in why.experiments(report, found, Linker(report))}


def test_each_experiment_is_a_question_with_its_answer():
    answers = {question: one.answer for question, one in asked(live.live()).items()}
    assert answers == {
        "Could the GPU go faster?": "Yes",
        "Are copies the limit?": "Not once pinned",
        "Is it the loader alone?": "No",
        "Is it the pin thread?": "Yes",
        "Does the main thread lack its threads?": "No",
        "Do waits for the device in each step hold it back?": "No",
        "And with the recommended settings?": "Faster",
    }


def test_figures_of_an_experiment_lead_to_its_blocks():
    measured = asked(live.live())["Is it the pin thread?"].measured
    for workers in (4, 8, 16):
        assert f'href="#rec-loader_only-nw{workers}-pin1" title="blocks ' in measured
    assert asked(live.live())["Is it the loader alone?"].what == (
        "Drain the loader, no pin thread: no, 4, 8, 16 and no (pinning) workers"
    )


def test_without_a_gpu_nobody_asks_for_it():
    report = live.live()
    facts = [m.Fact(name="accelerator_present", value=False, unit=None, trial=None, source="x")]
    assert "Could the step go faster?" in asked(msgspec.structs.replace(report, facts=facts))


@pytest.mark.parametrize(
    ("ratio", "ci95", "answer"),
    [
        (3.0, (2.0, 4.0), "Yes"),
        (1.01, (0.99, 1.03), "No"),
        (1.2, (0.9, 1.5), "Not settled"),
        (3.0, None, "Not settled: too few rounds"),
    ],
)
def test_an_answer_needs_its_interval(ratio, ci95, answer):
    report = live.live()
    gain = m.Ratio(ratio=ratio, ci95=ci95, rounds=6)
    trials = [
        msgspec.structs.replace(one, versus_baseline=gain) if one.id == live.THREADS else one for one in report.trials
    ]
    question = asked(msgspec.structs.replace(report, trials=trials))["Does the main thread lack its threads?"]
    assert (question.answer, question.is_limit) == (answer, answer == "Yes")


def test_a_fresh_run_asks_nothing():
    assert asked(example.confirmed()) == {}
    assert asked(example.empty()) == {}


def test_more_workers_do_not_lift_training_off_the_pin_thread():
    report = live.live()
    found = ceilings(report, names.primary_finding(report))
    chart = why.workers_chart(report, found)
    assert chart.title == "Training sits on the pin thread's ceiling, however many workers feed it"
    alone = live.ceilings_alone()
    assert why.workers_chart(alone, ceilings(alone, None)) is None
    assert why.workers_chart(example.confirmed(), None) is None


def test_the_chart_of_workers_needs_a_verdict_on_the_pin_thread():
    report = msgspec.structs.replace(live.live(), findings=[])
    assert why.workers_chart(report, ceilings(report, None)) is None


def test_a_pin_thread_that_does_not_run_as_written_would_be_the_limit():
    report = msgspec.structs.replace(live.live(), findings=[])
    assert asked(report)["Is it the pin thread?"].answer == "It would be, once pinned"


def test_the_rules_answer_what_a_tweak_asked():
    question = asked(live.threads_lost())["Does the main thread lack its threads?"]
    assert (question.answer, question.is_limit) == ("Yes", True)
    assert "3.10 × (2.84–3.39)</a> as written" in question.measured
