"""fixes.py compares what a report states of its patch with what fresh processes gave."""

from __future__ import annotations

import json
import subprocess

import fixes
import msgspec
import product
import pytest
import sweeps

from pindiag.analysis.patched import patch_verification
from pindiag.fixes import patch_loader
from pindiag.model import Effect, Fix, PatchedSources, PatchVerification, Safety
from pindiag.plan.patched import next_pair
from pindiag.store import RunDirectory
from tests.unit.conftest import run_spec
from tests.unit.report import example

SOURCE = "import torch\nloader = torch.utils.data.DataLoader(data, num_workers=4)  # four\n"
EDIT = patch_loader(SOURCE, "train.py", 2, {"num_workers": 0})


def fix(patch: str | None = EDIT.diff, **changes: bool | int | None) -> Fix:
    return Fix(
        summary="Set it.",
        changes=changes or {"num_workers": 0},
        location=None,
        patch=patch,
        snippet=None,
        effect=Effect(kind="verified", ratio=1.5, ci95=(1.4, 1.6)),
        trade_off=None,
        safety=Safety(status="passed", reason=""),
    )


def fresh(ratio: float | None, ci95: tuple[float, float] | None, reason: str | None = None) -> PatchVerification:
    sides = {"original_samples_per_second": [], "patched_samples_per_second": []}
    return PatchVerification(
        summary="Set it.", files=[], pairs=4, launches=[], ratio=ratio, ci95=ci95, epochs=2, reason=reason, **sides
    )


@pytest.mark.parametrize(
    ("ratio", "ci95", "within"),
    [
        (1.58, (1.57, 1.59), True),  # in the interval
        (1.66, (1.51, 1.82), True),  # beside it by less than its own uncertainty
        (1.70, (1.69, 1.71), False),  # beside it, and sure of that
        (1.76, (1.60, 1.93), False),  # intervals that only just meet are apart
        (1.00, (0.5, 2.00), True),
        (1.50, None, None),
        (None, None, None),
    ],
)
def test_within_is_no_further_apart_than_both_intervals_explain(ratio, ci95, within):
    assert fixes.is_within(fix().effect, fresh(ratio, ci95)) is within


def test_a_gain_without_an_interval_is_not_judged():
    bare = msgspec.structs.replace(fix(), effect=Effect(kind="predicted", ratio=1.5, ci95=None))
    assert fixes.is_within(bare.effect, fresh(1.5, (1.4, 1.6))) is None
    assert fixes.compared(bare, fresh(1.5, (1.4, 1.6)))["why"] == "the report states no interval"


def test_a_patch_that_could_not_be_measured_does_not_hold():
    found = fixes.compared(fix(), fresh(None, None, "the script with the patch failed: exit status 1"))
    assert (found["within"], found["why"]) == (False, "the script with the patch failed: exit status 1")
    assert fixes.compared(fix(), fresh(1.5, None))["why"] == "4 fresh pairs are too few for an interval"


@pytest.mark.parametrize(
    ("after", "sound"),
    [
        (EDIT.after, True),
        (SOURCE, False),
        (EDIT.after.replace("# four", ""), False),
        (EDIT.after.replace("data,", "data,,"), False),
        (EDIT.after + "# one more\n", True),
    ],
)
def test_a_sound_change_parses_and_keeps_comments(after, sound):
    assert fixes.is_sound(SOURCE, after) is sound


def report(*found: Fix):
    """A report whose only fixes are these."""
    shown = example.confirmed()
    with_fixes = msgspec.structs.replace(shown.findings[0], fixes=list(found))
    bare = msgspec.structs.replace(shown.recommendation, fix=None)
    return msgspec.structs.replace(shown, findings=[with_fixes], recommendation=bare)


def test_what_is_proposed_again_is_part_of_the_change_in_a_patch():
    first = fix(num_workers=0, pin_memory=True)
    assert fixes.is_proposed_again(first, report(fix(pin_memory=True)))
    assert not fixes.is_proposed_again(first, report(fix(pin_memory=False), fix(num_workers=2)))
    assert not fixes.is_proposed_again(first, report(fix(None, pin_memory=True)))
    left = msgspec.structs.replace(first, by_hand=["pin_memory"])
    assert not fixes.is_proposed_again(left, report(fix(pin_memory=True)))


def test_the_fix_that_a_recommendation_shows_is_a_proposal_too():
    shown = report()
    own = msgspec.structs.replace(shown.recommendation, fix=fix())
    assert fixes.is_proposed_again(fix(), msgspec.structs.replace(shown, recommendation=own))


@pytest.fixture
def pairs(script, tmp_path, monkeypatch):
    """Pairs over whole epochs of a script that takes time between them, patched to be 1.5 times as fast."""
    patch = PatchedSources(summary="Set it.", before={"/t.py": "a"}, after={"/t.py": "b"}, loader=None)
    spec = run_spec(patch=patch, budget_s=300.0, sweep=False)
    fake = script(between_s=2.0, noise=0.01, rate=lambda _: 8000.0 * (1.5 if fake.patched else 1))
    while (order := next_pair(spec, fake.records)) is not None:
        fake.patched = order.patched
        fake.run(order)
    made = RunDirectory.create(tmp_path / "out")
    made.write_spec(spec)
    RunDirectory.create(made.patched).write_spec(spec)
    monkeypatch.setattr(RunDirectory, "records", lambda _: fake.records)
    return made.path, patch_verification(patch, fake.records)


def test_a_gain_of_steps_is_compared_with_one_of_steps(pairs):
    run, measured = pairs
    assert measured.epochs == 2
    assert measured.ratio < 1.4
    steps = fixes.alike(measured, run, whole=False)
    assert steps.ratio == pytest.approx(1.5, rel=0.03)
    assert steps.ci95[0] < steps.ratio < steps.ci95[1]
    assert (steps.epochs, steps.pairs) == (None, measured.pairs)


def test_and_one_of_epochs_with_one_of_epochs(pairs):
    run, measured = pairs
    assert fixes.alike(measured, run, whole=True) is measured
    bare = msgspec.structs.replace(measured, epochs=None)
    assert fixes.alike(bare, run, whole=False) is bare
    assert fixes.alike(None, run, whole=False) is None


def steps() -> PatchVerification:
    return msgspec.structs.replace(fresh(1.45, (1.4, 1.5)), epochs=None)


def row(within: bool | None) -> dict[str, object]:
    return {"sample": "rows"} | fixes.EMPTY | {"within": within}


def test_only_what_states_an_interval_is_counted():
    made = fixes.summary([row(True), row(False), row(None)])
    assert (made["within"], made["total"], len(made["cases"])) == (1, 2, 3)


class Pretended:
    """The product, which leaves what it is told to."""

    def __init__(self, monkeypatch, reports, after: str) -> None:
        self.asked: list[list[str]] = []
        self.applied = 0
        self.reports = iter(reports)
        self.after = after
        monkeypatch.setattr(fixes, "report_of", self.report_of)
        monkeypatch.setattr(sweeps.Place, "report", lambda place, options: self.report_of([place, *options], None))
        monkeypatch.setattr(fixes, "pindiag", self.apply)
        monkeypatch.setattr(fixes, "main_fix", lambda report: report.findings[0].fixes[0])

    def report_of(self, words, _):
        self.asked.append(words)
        found = next(self.reports)
        if isinstance(found, Exception):
            raise found
        return found

    def apply(self, words, folder):
        assert words[0] == "apply"
        self.applied += 1
        (folder / "train.py").write_text(self.after)
        return subprocess.CompletedProcess(words, 0)


@pytest.fixture
def sample(tmp_path):
    place = tmp_path / "samples" / "train.py"
    place.parent.mkdir()
    place.write_text(SOURCE)
    return place


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "of its own"
    made.mkdir()
    return made


def test_a_sample_is_swept_verified_changed_and_swept_again(monkeypatch, sample, folder):
    swept = report(fix())
    steps = msgspec.structs.replace(fresh(1.45, (1.4, 1.5)), epochs=None)
    verified = msgspec.structs.replace(swept, patch_verification=steps)
    told = Pretended(monkeypatch, [swept, verified, report(fix(pin_memory=True))], EDIT.after)
    case = fixes.measured(sample, fixes.lengths("9s", "8s", "7s"), folder)
    place = sweeps.Place(folder / "train", "train")
    assert [words[0] for words in told.asked] == [
        place,
        "--verify-patch",
        sweeps.Place(place.folder / "again", "train"),
    ]
    assert [words[words.index("--budget") + 1] for words in told.asked] == ["9s", "8s", "7s"]
    assert case == {
        "sample": "train",
        "fix": "Set it.",
        "kind": "verified",
        "stated": 1.5,
        "stated_ci95": (1.4, 1.6),
        "stated_epochs": None,
        "fresh": 1.45,
        "fresh_ci95": (1.4, 1.5),
        "fresh_epochs": None,
        "within": True,
        "applies": True,
        "proposed_again": False,
        "why": None,
    }
    assert sample.read_text() == place.script.read_text() == SOURCE
    assert (place.folder / "again" / "train.py").read_text() == EDIT.after


def test_what_is_measured_and_changed_already_is_not_again(monkeypatch, sample, folder):
    verified = msgspec.structs.replace(report(fix()), patch_verification=steps())
    again = report(fix(pin_memory=True))
    told = Pretended(monkeypatch, [verified, again, verified, again], EDIT.after)
    cases = [fixes.measured(sample, fixes.lengths("9s", "8s", "7s"), folder) for _ in range(2)]
    assert cases[0] == cases[1]
    assert (cases[0]["fresh"], cases[0]["applies"]) == (1.45, True)
    assert (len(told.asked), told.applied) == (4, 1)


def test_a_change_that_was_refused_does_not_apply(monkeypatch, sample, folder):
    verified = msgspec.structs.replace(report(fix()), patch_verification=steps())
    Pretended(monkeypatch, [verified, report(fix())], SOURCE)
    assert fixes.measured(sample, fixes.lengths("9s", "8s", "7s"), folder)["applies"] is False


def test_a_report_without_a_patch_ends_it(monkeypatch, sample, folder):
    told = Pretended(monkeypatch, [report(msgspec.structs.replace(fix(None), snippet="num_workers=0"))], SOURCE)
    case = fixes.measured(sample, fixes.lengths("9s", "8s", "7s"), folder)
    assert (case["within"], case["why"], len(told.asked)) == (None, "no patch: num_workers=0", 1)


def test_a_run_that_leaves_no_report_keeps_what_was_known(monkeypatch, sample, folder):
    Pretended(monkeypatch, [report(fix()), product.NoReport("no report, exit code 4: it broke")], SOURCE)
    case = fixes.measured(sample, fixes.lengths("9s", "8s", "7s"), folder)
    assert (case["stated"], case["within"], case["why"]) == (1.5, None, "no report, exit code 4: it broke")


def test_what_several_processes_wrote_is_merged(monkeypatch, capsys, tmp_path):
    for name, within in (("one", True), ("two", False)):
        (tmp_path / name).write_text(json.dumps(fixes.summary([row(within)])))
    monkeypatch.setattr("sys.argv", ["fixes.py", "--merge", str(tmp_path / "one"), str(tmp_path / "two")])
    fixes.main()
    printed = json.loads(capsys.readouterr().out)
    assert (printed["within"], printed["total"]) == (1, 2)
