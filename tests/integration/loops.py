"""Sweeps a script in one live launch, and compares what becomes of it with a run by plain Python."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec

from pindiag.model import Block, BlockOrder, LoaderChosen, LoaderIterated, TargetEnded, TreatmentApplied

from .probe_harness import Result, launch, order, then, under

MARK = "# trains"
"""In the line of a script that makes its training loader."""

FEW = {"steps": 8, "settle_steps": 2, "seconds": 0}


def begun(folder: Path, script: Path, *args: str) -> subprocess.Popen[str]:
    """The script without us, in a folder of its own."""
    folder.mkdir()
    return subprocess.Popen(
        [sys.executable, script, *args], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def plain(folder: Path, script: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Run it to its end."""
    with begun(folder, script, *args) as process:
        output, _ = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, output)


def swept(
    folder: Path,
    script: Path,
    *args: str,
    blocks: list[BlockOrder],
    natural: bool = True,
    python: str | None = None,
) -> Result:
    """Run it live, first as written and then under each treatment in turn.

    Args:
        natural: let its epochs end where its own do, and the script run to its own end in the last treatment.
        python: the interpreter of a fresh process.
    """
    few = [msgspec.structs.replace(block, **FEW) for block in blocks]
    if natural:
        few.append(msgspec.structs.replace(blocks[-1], block=len(blocks) + 2, steps=100_000))
    answers = [then(block) for block in few]
    return launch(
        folder,
        script,
        *args,
        isolation="live",
        blocks=[order(**FEW)],
        answers=answers,
        natural_epochs=natural,
        python=python,
    )


def assert_swept(result: Result, script: Path, blocks: list[BlockOrder]) -> None:
    """Its training loader was found, and every block ran under what it should."""
    location, _, line = result.one(LoaderChosen).key.location.rpartition(":")
    assert location == str(script), location
    assert MARK in script.read_text().splitlines()[int(line) - 1]
    done = result.all(Block)[: len(blocks) + 1]
    assert [(block.trial, block.status) for block in done] == [
        ("as-written", "counted"),
        *((block.trial, "counted") for block in blocks),
    ], result.output
    assert not [applied.refused for applied in result.all(TreatmentApplied) if applied.refused]
    effective = {record.trial: record.configuration for record in result.all(LoaderIterated) if record.trial}
    for block in blocks:
        for name, value in block.treatment.changes.items():
            assert getattr(effective[block.trial], name) == value, (block.trial, name)


def assert_all_the_same(folder: Path, script: Path, *args: str, blocks: list[BlockOrder]) -> Result:
    """Swept to its own end, it comes to what it does without us, at the same time."""
    with begun(folder / "plain", script, *args) as without:
        result = swept(folder, script, *args, blocks=blocks)
        output, _ = without.communicate()
    assert_swept(result, script, blocks)
    assert results(result.output) == results(output) != []
    assert result.returncode == without.returncode
    return result


def assert_swept_without_end(folder: Path, script: Path, *args: str, blocks: list[BlockOrder]) -> Result:
    """Its epochs follow each other without end until the sweep is over, and nothing is raised."""
    result = swept(folder, script, *args, blocks=blocks, natural=False)
    assert_swept(result, script, blocks)
    assert result.one(TargetEnded).how == "stopped"
    assert result.returncode == 0
    assert "Traceback" not in result.output
    return result


def results(output: str) -> list[str]:
    """What a training has come to, in the lines that say it."""
    return [line for line in output.splitlines() if line.startswith("result ")]


def workers(*numbers: int) -> list[BlockOrder]:
    """A short block for each number of workers."""
    return [under(block, f"nw{number}", num_workers=number) for block, number in enumerate(numbers, 2)]
