import msgspec
import pytest

from pindiag.model import Report, Safety
from pindiag.redact import Redactor
from pindiag.report import redact, redact_report
from pindiag.report.redaction import _walk

from . import example


@pytest.mark.parametrize("name", ["measured", "fresh", "round", "pageable_copy", "counted", "nw4", "confirmed"])
def test_a_user_named_like_a_word_of_ours_breaks_nothing(name):
    report = example.confirmed()
    hide = Redactor(user=name, host=name)
    walked = _walk(msgspec.to_builtins(report), hide, hide)
    converted = msgspec.convert(walked, Report)
    assert [trial.id for trial in converted.trials] == [trial.id for trial in report.trials]
    assert [fact.name for fact in converted.facts] == [fact.name for fact in report.facts]
    assert [block.status for block in converted.blocks] == [block.status for block in report.blocks]


def test_twice_is_once():
    once = redact_report(example.failed(), example.SPEC)
    assert redact_report(once, example.SPEC) == once


def test_secrets_of_the_arguments_go_even_with_shown_paths():
    report = example.failed()
    target = msgspec.structs.replace(report.target, error="KeyError: 's3cr3t-value-9' in /home/ada/work/train.py")
    shown = redact_report(msgspec.structs.replace(report, target=target), example.SPEC, show_paths=True)
    assert shown.target.error == "KeyError: '<redacted>' in /home/ada/work/train.py"


def test_lists_named_like_words_of_ours_are_looked_into():
    """`trials` and `blocks` are lists of ids in one place, and of what others said in another."""
    report = example.confirmed()
    said = "lost /home/ada/work/x.py"
    trials = [msgspec.structs.replace(trial, reason=said) for trial in report.trials]
    blocks = [msgspec.structs.replace(block, reason=said) for block in report.blocks]
    shown = redact_report(msgspec.structs.replace(report, trials=trials, blocks=blocks), example.SPEC)
    assert {one.reason for one in [*shown.trials, *shown.blocks]} == {"lost x.py"}


def test_whoever_ran_it_is_not_named_by_whoever_makes_the_report():
    report = example.failed()
    target = msgspec.structs.replace(report.target, error="grace on gracebox: /srv/home/grace/x.py")
    spec = msgspec.structs.replace(example.SPEC, home="/srv/home/grace", user="grace", host="gracebox")
    shown = redact_report(msgspec.structs.replace(report, target=target), spec)
    assert shown.target.error == "<user> on <host>: ~/x.py"


def test_a_kernels_name_is_its_authors_and_a_facts_name_is_ours():
    walked = _walk(
        {
            "kernels": [{"name": "ada_kernel", "ms": 1.0, "calls": 2.0}],
            "facts": [{"name": "ada", "value": 1, "trial": None}],
        },
        *(Redactor(user="ada"),) * 2,
    )
    assert walked["kernels"][0]["name"] == "<user>_kernel"
    assert walked["facts"][0]["name"] == "ada"


def test_drawing_and_what_was_asked_are_redacted_like_the_report():
    drawing = msgspec.structs.replace(example.NO_DRAWING, timeline_reason="no /home/ada/work/traces/x.json")
    assert redact(drawing, [example.SPEC]).timeline_reason == "no traces/x.json"
    asked = redact(example.SPEC, [example.SPEC])
    assert (asked.target, asked.cwd) == ("train.py", ".")
    assert "s3cr3t-value-9" not in asked.args


@pytest.mark.parametrize("name", ["worker", "workers", "training", "loader", "script", "pin", "copies", "samples"])
def test_a_host_or_user_called_by_an_ordinary_word_masks_none_in_our_sentences(name):
    spec = msgspec.structs.replace(example.SPEC, host=name, user=name)
    report = example.confirmed()
    shown = redact_report(report, spec)
    assert shown.verdict == redact_report(report, example.SPEC).verdict
    for before, after in zip(report.findings, shown.findings, strict=True):
        assert (after.title, after.explanation) == (before.title, before.explanation)
        assert [(item.name, item.source) for item in after.evidence] == [
            (item.name, item.source) for item in before.evidence
        ]


def with_reasons(report, reason):
    """A report in which every reason is the same."""

    def walk(value):
        if isinstance(value, list):
            return [walk(item) for item in value]
        if isinstance(value, dict):
            return {key: reason if key == "reason" else walk(item) for key, item in value.items()}
        return value

    return msgspec.convert(walk(msgspec.to_builtins(report)), Report)


@pytest.mark.parametrize("name", ["host", "node", "gpu", "worker", "buffer"])
def test_every_reason_is_a_sentence_of_ours(name):
    report = with_reasons(example.confirmed(), "No host buffer of a worker is written again on this gpu node.")
    spec = msgspec.structs.replace(example.SPEC, host=name, user=name)
    assert redact_report(report, spec) == redact_report(report, example.SPEC)


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        ("its worker gave none: RuntimeError: worker 3 lost", "its worker gave none: RuntimeError: <host> 3 lost"),
        ("its worker gave none: my.own.Halt: a worker", "its worker gave none: my.own.Halt: a <host>"),
        ("no trace of a worker: [Errno 2] No worker", "no trace of a worker: [Errno 2] No <host>"),
    ],
)
def test_an_exception_in_a_reason_is_what_others_said(reason, shown):
    spec = msgspec.structs.replace(example.SPEC, host="worker")
    assert redact(Safety(status="not_checked", reason=reason), [spec]).reason == shown


def test_why_something_failed_is_what_others_said():
    """Also where the exception looks like no exception."""
    spec = msgspec.structs.replace(example.SPEC, host="worker")
    failed = redact(Safety(status="failed", reason="halt: a worker"), [spec])
    assert failed.reason == "halt: a <host>"
    ours = Safety(status="failed", reason="a worker ended by itself; target.log may say why")
    assert redact(ours, [spec]) == ours


def test_a_patch_fits_its_file_whatever_the_host_is_called():
    report = example.confirmed()
    spec = msgspec.structs.replace(example.SPEC, host="loader", user="shuffle")
    assert [one.fixes for one in redact_report(report, spec).findings] == [
        one.fixes for one in redact_report(report, example.SPEC).findings
    ]


def test_a_host_called_by_an_ordinary_word_goes_from_what_the_script_said():
    report, spec = example.failed(), msgspec.structs.replace(example.SPEC, host="worker", user="loader")
    target = msgspec.structs.replace(report.target, error="OSError: worker refused loader")
    verdict = msgspec.structs.replace(report.verdict, headline="Your script stopped: OSError: worker refused loader")
    shown = redact_report(msgspec.structs.replace(report, target=target, verdict=verdict), spec)
    assert shown.target.error == "OSError: <host> refused <user>"
    assert shown.verdict.headline == "Your script stopped: OSError: <host> refused <user>"
