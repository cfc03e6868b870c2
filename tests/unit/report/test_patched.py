"""What `--verify-patch` measured: the same in the page and in the summary, and beside it what the report states."""

from __future__ import annotations

import msgspec
import pytest

from pindiag.api import exit_code
from pindiag.errors import ExitCode
from pindiag.model import PatchVerification
from pindiag.report import conclusions, redact_report, render_html, render_markdown
from pindiag.report.sections.verdict import main_fix, marks
from pindiag.report.sections.verification import against_stated
from tests.unit.conftest import run_spec

from . import example

MEASURED = PatchVerification(
    summary="",
    files=["/home/alice/train.py"],
    pairs=4,
    launches=[2, 3, 4, 5, 6, 7, 8, 9],
    original_samples_per_second=[3240.0, 3251.0, 3198.0, 3302.0],
    patched_samples_per_second=[4811.0, 4790.0, 4733.0, 4902.0],
    ratio=1.479,
    ci95=(1.46, 1.498),
    epochs=2,
)


def with_patch(**changes):
    report = example.verified()
    fix = main_fix(report)
    assert fix is not None
    made = msgspec.structs.replace(MEASURED, **({"summary": fix.summary} | changes))
    return msgspec.structs.replace(report, patch_verification=made)


def rendered(report):
    spec = run_spec()
    shown = redact_report(report, spec)
    return render_html(shown, example.drawing(shown), spec), render_markdown(shown, spec)


def test_it_has_a_section_with_its_pairs_and_a_mark():
    html, markdown = rendered(with_patch())
    section = html.partition('<section id="patched"')[2].partition("</section>")[0]
    assert "The patch gives 1.48 × (1.46–1.50) in 4 fresh pairs of 2 whole epochs each" in section
    assert "launches 2, 3, 4, 5, 6, 7, 8, 9 of the journal in <code>patched</code>" in section
    assert section.count('<tr><th scope="row">') == 4
    assert "Patch measured in 4 fresh pairs of 2 whole epochs each: 1.48 × (1.46–1.50)" in markdown


@pytest.mark.parametrize(
    ("changes", "conclusion", "mark"),
    [
        (
            {"ratio": 1.01, "ci95": (0.97, 1.05)},
            "No gain of the patch is shown by 4 fresh pairs of 2 whole epochs each: 1.01 × (0.97–1.05)",
            "none",
        ),
        (
            {"ratio": 1.4, "ci95": None, "pairs": 1},
            "No gain of the patch is shown by 1 fresh pair of 2 whole epochs each: 1.40 ×",
            "none",
        ),
        ({"ratio": None, "ci95": None, "reason": "it failed"}, "The patch was not measured: it failed", "none"),
        ({}, "The patch gives 1.48 ×", "full"),
        ({"by_hand": {"num_workers": 0}}, "The patch, with num_workers=0 set by hand, gives 1.48 ×", "full"),
    ],
)
def test_no_gain_is_said_where_none_is_shown(changes, conclusion, mark):
    report = with_patch(**changes)
    assert conclusion in conclusions.patched(report.patch_verification)
    (shown,) = [one for one in marks(report, None) if one.word.startswith("Patch")]
    assert shown.level == mark


def test_what_is_left_to_the_user_is_said():
    html, _ = rendered(with_patch(by_hand={"num_workers": 0, "pin_memory": True}))
    section = html.partition('<section id="patched"')[2].partition("</section>")[0]
    assert '>num_workers=0</code> and <code class="nowrap">pin_memory=True</code> to you; pindiag set it' in section


def test_the_stated_gain_is_held_against_it():
    report = with_patch()
    fix = main_fix(report)
    for stated, said in [(1.47, "lies in that interval"), (1.8, "1.80 × for the change, which lies outside")]:
        told = msgspec.structs.replace(fix, effect=msgspec.structs.replace(fix.effect, ratio=stated))
        assert said in against_stated(report.patch_verification, told)
    assert against_stated(report.patch_verification, None) == ""
    other = msgspec.structs.replace(report.patch_verification, summary="Something else.")
    assert against_stated(other, fix) == ""


@pytest.mark.parametrize(
    ("status", "code"),
    [("measured", ExitCode.OK), ("not_measured", ExitCode.OK), ("failed", 3), ("interrupted", 130)],
)
def test_the_exit_code_is_that_of_the_patch_where_that_was_asked_for(status, code):
    report = with_patch(status=status)
    assert exit_code(report, of_patch=True) == code
    assert exit_code(report) == ExitCode.OK
