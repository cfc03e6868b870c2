import msgspec
import pytest

from pindiag.model import Report
from pindiag.redact import Redactor
from pindiag.report import redact_report
from pindiag.report.redaction import _walk

from . import example


@pytest.mark.parametrize("name", ["measured", "fresh", "round", "pageable_copy", "counted", "nw4", "confirmed"])
def test_a_user_named_like_a_word_of_ours_breaks_nothing(name):
    report = example.confirmed()
    walked = _walk(msgspec.to_builtins(report), Redactor(user=name, host=name))
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
