import msgspec
import pytest

from pindiag.report import redact_report, render_markdown

from . import example
from .test_html import HOSTILE, VARIANTS, spec_of


def summary(report, spec=example.SPEC):
    return render_markdown(redact_report(report, spec), spec)


@pytest.mark.parametrize("name", VARIANTS)
def test_at_most_thirty_lines_without_html_or_private_names(name):
    text = summary(VARIANTS[name](), spec_of(name))
    assert text.count("\n") <= 30
    assert text.startswith(f"**{VARIANTS[name]().verdict.headline}**\n")
    assert "<" not in text.replace("< 0.", "")
    assert "/home/ada" not in text
    assert text.count("```") % 2 == 0


def test_the_recommended_row_is_bold_and_the_baseline_is_there():
    text = summary(example.confirmed())
    assert "| **no workers, pin, non_blocking** | **4\u202f810** |" in text
    assert "| 4 workers, pin off (as written) | 3\u202f240 |" in text


def test_what_does_not_fit_of_the_patch_is_counted():
    text = summary(example.confirmed())
    assert "+    pin_memory=True," in text
    assert "(1 more hunk in report.html.)" in text


def test_the_exception_stands_there():
    assert "`RuntimeError: mat1 and mat2 shapes cannot be multiplied (64x784 and 100x10)`" in summary(example.failed())


def test_hostile_text_keeps_to_its_line():
    report = example.confirmed()
    verdict = msgspec.structs.replace(report.verdict, lead=f"```\n# {HOSTILE}\n\n\n")
    text = summary(msgspec.structs.replace(report, verdict=verdict))
    assert text.count("\n") <= 30
    assert "\x1b" not in text
    assert not any(line.startswith("#") for line in text.splitlines())
