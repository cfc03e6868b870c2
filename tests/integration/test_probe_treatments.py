"""A treatment's changes are what the training loader runs under, whatever its style; what cannot be changed is said."""

from __future__ import annotations

import pytest

from pindiag.model import Block, LoaderChosen, LoaderIterated, LoaderMade, TreatmentApplied

from .probe_harness import TARGETS, key, launch, treatment

pytestmark = pytest.mark.integration

PLAIN = TARGETS / "plain.py"
STYLES = TARGETS / "styles.py"
MADE = "loader = DataLoader(Rows(), **"


def in_effect(result):
    chosen = result.one(LoaderChosen).loader
    return next(record.configuration for record in result.all(LoaderIterated) if record.loader == chosen)


@pytest.mark.parametrize(
    ("written", "changes", "expected"),
    [
        ("", {"num_workers": 2}, {"num_workers": 2, "prefetch_factor": 2}),
        ("", {"num_workers": 1, "prefetch_factor": 4, "persistent_workers": True},
         {"num_workers": 1, "prefetch_factor": 4, "persistent_workers": True}),
        ("num_workers=2, timeout=30, multiprocessing_context='fork', persistent_workers=True, prefetch_factor=3",
         {"num_workers": 0}, {"num_workers": 0, "prefetch_factor": None, "persistent_workers": False}),
        ("num_workers=2, multiprocessing_context='spawn'", {"num_workers": 1}, {"num_workers": 1}),
        ("num_workers=2, multiprocessing_context='forkserver'", {"num_workers": 1}, {"num_workers": 1}),
        ("", {"batch_size": 16}, {"batch_size": 16}),
    ],
)  # fmt: skip
def test_changed_arguments_are_in_effect(tmp_path, written, changes, expected):
    result = launch(tmp_path, PLAIN, written, loader=key(PLAIN, MADE), treatment=treatment(**changes))
    configuration = in_effect(result)
    assert {name: getattr(configuration, name) for name in expected} == expected
    applied = result.one(TreatmentApplied)
    assert (applied.applied, applied.refused, applied.how) == (changes, {}, "cloned at iteration")
    block = result.one(Block)
    assert (block.status, block.samples) == ("counted", block.steps * expected.get("batch_size", 8))
    assert result.output == ""


@pytest.mark.parametrize(
    ("style", "made", "changes"),
    [
        ("iterable", "DataLoader(Lines(), batch_size=8))", {"num_workers": 2}),
        ("own_batch_sampler", "OwnBatches()))", {"num_workers": 2}),
        ("no_batch_size", "batch_size=None", {"num_workers": 1}),
        ("worker_init", "worker_init_fn", {"num_workers": 0}),
        ("by_hand", "num_workers=1)", {"num_workers": 0}),
        ("with_validation", "train = DataLoader(Rows(), batch_size=8, shuffle=True)", {"num_workers": 1}),
        ("rebuilt", "for x, y in DataLoader(Rows(), batch_size=8):", {"num_workers": 1}),
        ("zipped", "fast, slow", {"num_workers": 1}),
    ],
)
def test_loaders_of_other_styles_take_changes(tmp_path, style, made, changes):
    loader = key(STYLES, made, ordinal=1 if style == "zipped" else 0)
    result = launch(tmp_path, STYLES, style, loader=loader, treatment=treatment(**changes))
    assert in_effect(result).num_workers == changes["num_workers"]
    assert result.one(TreatmentApplied).applied == changes
    block = result.one(Block)
    samples = 10 if style == "own_batch_sampler" else 8
    assert (block.status, block.samples) == ("counted", block.steps * samples)


def test_only_the_training_loader_is_changed(tmp_path):
    loader = key(STYLES, "train = DataLoader(Rows(), batch_size=8, shuffle=True)")
    result = launch(
        tmp_path, STYLES, "with_validation", loader=loader, treatment=treatment(num_workers=1), natural_epochs=True
    )
    assert all(made.configuration.num_workers == 0 for made in result.all(LoaderMade))
    assert result.one(Block).status == "counted"


def test_a_loader_that_iterates_in_its_own_way_is_changed_at_construction(tmp_path):
    loader = key(STYLES, "super().__init__(*args, **kwargs)")
    result = launch(tmp_path, STYLES, "subclass", loader=loader, treatment=treatment(num_workers=1))
    assert result.one(TreatmentApplied).how == "changed at construction"
    assert in_effect(result).num_workers == 1
    assert result.one(Block).status == "counted"


@pytest.mark.parametrize(
    ("style", "made", "changes", "reasons"),
    [
        ("own_batch_sampler", "OwnBatches()))", {"batch_size": 4}, ["OwnBatches"]),
        ("no_batch_size", "batch_size=None", {"batch_size": 4}, ["does not make batches"]),
        ("batch_sampler", "batch_sampler=BatchSampler(",
         {"prefetch_factor": 4, "persistent_workers": True, "non_blocking": True},
         ["num_workers > 0", "num_workers > 0", "no batch moves to an accelerator"]),
    ],
)  # fmt: skip
def test_what_cannot_be_changed_is_said(tmp_path, style, made, changes, reasons):
    result = launch(tmp_path, STYLES, style, loader=key(STYLES, made), treatment=treatment(**changes))
    applied = result.one(TreatmentApplied)
    assert applied.applied == {}
    assert list(applied.refused) == list(changes)
    assert all(reason in applied.refused[name] for name, reason in zip(changes, reasons))
    assert result.one(Block).status == "counted"


def test_warnings_that_only_the_change_provokes_are_silent(tmp_path):
    result = launch(
        tmp_path, PLAIN, loader=key(PLAIN, MADE), treatment=treatment(num_workers=20, pin_memory=True), blocks=[]
    )
    assert in_effect(result).num_workers == 20
    assert "Warning" not in result.output


def test_a_tweak_holds_from_the_first_step_although_the_script_says_otherwise(tmp_path):
    written = "num_workers=torch.set_num_threads(3) or 1"
    result = launch(tmp_path, PLAIN, written, loader=key(PLAIN, MADE), treatment=treatment(fewer_intraop_threads=2))
    applied = result.one(TreatmentApplied)
    assert (applied.applied, applied.refused) == ({"fewer_intraop_threads": 2}, {})
    assert result.one(LoaderChosen).intraop_threads == 2
    assert result.one(Block).intraop_threads == 2
