"""Fixes of loaders that a framework makes: said where the framework takes the arguments."""

import pytest
from msgspec.structs import replace

from pindiag.fixes import Places
from pindiag.fixes.callee import TORCH, callee
from pindiag.model import Finding

from .test_fix_for import make_fix

FILE = "/home/me/project/train.py"
TRAINER = """\
import torch
from transformers import Trainer, TrainingArguments

arguments = TrainingArguments(
    output_dir="out",
    dataloader_num_workers=4,
    dataloader_prefetch_factor=8,
)
Trainer(model, arguments, train_dataset=data).train()
"""
AT = f"{FILE}:9"
MADE = {"loader": AT, "root": "/home/me/project", "maker": "transformers.trainer"}


def done(fix, source=TRAINER, transfers=(), **options):
    return Places(transfers=list(transfers), sources={FILE: source}, **{**MADE, **options}).fix_for(fix)


def test_training_arguments_are_changed_by_their_own_names():
    fix = done(make_fix(num_workers=2, pin_memory=False, batch_size=128))
    assert fix.location == f"{FILE}:4"
    assert "-    dataloader_num_workers=4,\n+    dataloader_num_workers=2," in fix.patch
    assert "+    dataloader_pin_memory=False," in fix.patch, "pinning is their default"
    assert "+    per_device_train_batch_size=128," in fix.patch
    assert fix.snippet is None
    assert fix.written == (
        "TrainingArguments(dataloader_num_workers=2, dataloader_pin_memory=False, per_device_train_batch_size=128)"
    )


def test_without_workers_what_needs_them_goes():
    fix = done(make_fix(num_workers=0, pin_memory=True))
    assert "-    dataloader_prefetch_factor=8," in fix.patch
    assert "pin_memory" not in fix.patch


def test_a_trainer_that_moves_its_batches_is_told_how():
    fix = done(make_fix(non_blocking=True), transfers=[AT])
    assert '+    accelerator_config={"non_blocking": True},' in fix.patch
    assert fix.location == f"{FILE}:4"
    assert fix.snippet is None


def test_copies_of_the_script_itself_stay_its_own():
    source = TRAINER + "extra = extra.to(device)\n"
    fix = done(make_fix(num_workers=0, non_blocking=True), source, transfers=[f"{FILE}:10"])
    assert "+extra = extra.to(device, non_blocking=True)" in fix.patch
    assert "accelerator_config" not in fix.patch


def test_the_summary_says_it_in_the_frameworks_words():
    fix = done(replace(make_fix(num_workers=2), summary="Set `num_workers=2`."))
    assert fix.summary == "Set `TrainingArguments(dataloader_num_workers=2)`."


@pytest.mark.parametrize(
    "source",
    [
        "arguments, = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()\n",
        "one, two = TrainingArguments('a'), TrainingArguments('b')\n",
    ],
)
def test_where_no_single_call_stands_it_is_said_what_to_write(source):
    fix = done(make_fix(num_workers=0), source)
    assert fix.patch is None
    assert fix.location == AT
    assert fix.snippet.startswith("dataloader_num_workers=0  # not in the patch: transformers.trainer makes the loader")
    assert fix.written == "TrainingArguments(dataloader_num_workers=0)"


def test_classes_that_extend_them_are_known():
    for made in ("Seq2SeqTrainingArguments", "SentenceTransformerTrainingArguments", "trl.SFTConfig"):
        fix = done(make_fix(num_workers=0), TRAINER.replace("TrainingArguments(", f"{made}("))
        assert "+" in fix.patch


def test_without_an_accelerator_pinning_is_guarded():
    finding = Finding(
        rule="PD113",
        cause="pin_without_accelerator",
        status="confirmed",
        severity="low",
        title="-",
        explanation="-",
        fixes=[make_fix(pin_memory=False)],
    )
    fix = Places(transfers=[], sources={FILE: TRAINER}, **MADE).complete(finding).fixes[0]
    assert "+    dataloader_pin_memory=torch.cuda.is_available()," in fix.patch
    assert fix.written == "TrainingArguments(dataloader_pin_memory=torch.cuda.is_available())"


def test_the_line_that_keeps_threads_stands_before_the_arguments():
    fix = done(make_fix(intraop_threads=2))
    assert "+torch.set_num_threads(torch.get_num_threads())\n arguments = TrainingArguments(" in fix.patch


def test_a_data_module_of_datasets_takes_workers_and_no_pinning():
    source = "data = LightningDataModule.from_datasets(train, num_workers=2)\ntrainer.fit(model, data)\n"
    options = {"loader": f"{FILE}:2", "maker": "lightning.pytorch.core.datamodule"}
    fix = done(make_fix(num_workers=4, pin_memory=False), source, **options)
    assert "+data = LightningDataModule.from_datasets(train, num_workers=4)" in fix.patch
    assert fix.snippet == "pin_memory=False  # not in the patch: LightningDataModule.from_datasets does not take it"


def test_a_net_of_skorch():
    options = {"loader": f"{FILE}:2", "maker": "skorch.net"}
    fix = done(make_fix(num_workers=4), "net = NeuralNetClassifier(Module)\nnet.fit(x, y)\n", **options)
    assert "+net = NeuralNetClassifier(Module, iterator_train__num_workers=4)" in fix.patch


def test_an_unknown_maker_is_named():
    options = {"loader": f"{FILE}:1", "maker": "somelib.data"}
    fix = done(make_fix(num_workers=4), "somelib.fit(model)\n", **options)
    assert fix.patch is None
    assert fix.written is None
    assert "somelib.data makes it; say it where the script calls that" in fix.snippet


def test_a_loader_of_the_script_itself_is_torchs():
    assert callee(None) == TORCH
