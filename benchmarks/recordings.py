"""Samples, their truth, and how a report of one is judged by it: for accuracy.py and for tests."""

from __future__ import annotations

import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from pindiag import rules
from pindiag.model import Finding
from pindiag.store import RunDirectory

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = ROOT / "samples"
DATA = ROOT / "tests" / "data"
HEALTHY = frozenset({"compute_bound", "no_difference"})
FOUND = frozenset({"confirmed", "suspected"})
OF_FACT = frozenset(each.name for each in rules.catalogue() if each.of_fact)


class Truth(msgspec.Struct, forbid_unknown_fields=True):
    """What samples/truth.toml says of a sample on one kind of machine."""

    cause: str
    accept: list[str]
    never: list[str]
    helps: list[dict[str, bool | int]]
    also: list[str] = []

    def accused(self, findings: Sequence[Finding]) -> list[str]:
        """What is confirmed though it never holds; of a healthy sample, any cause of slowness that is not accepted."""
        confirmed = {each.cause for each in findings if each.status == "confirmed"}
        wrong = set(self.never)
        if self.cause in HEALTHY:
            wrong |= confirmed - OF_FACT - {*self.accept, *self.also}
        return sorted(confirmed & wrong)

    def overlooked(self, findings: Sequence[Finding]) -> list[str]:
        """What holds beside the cause, and is neither confirmed nor suspected."""
        return sorted(set(self.also) - {each.cause for each in findings if each.status in FOUND})


def truths() -> dict[str, dict[str, Truth]]:
    """The truth of each sample, by the kind of machine: cpu, cuda."""
    return msgspec.toml.decode((SAMPLES / "truth.toml").read_bytes(), type=dict[str, dict[str, Truth]])


def where(accelerator: bool) -> str:
    """The kind of machine, as truth.toml names it."""
    return "cuda" if accelerator else "cpu"


@dataclass(frozen=True)
class Recording:
    """An archive of a run directory in tests/data."""

    archive: Path

    @property
    def name(self) -> str:
        """Of the archive, and of the folder in it."""
        return self.archive.name.removesuffix(".tar.xz")

    def unpack(self, folder: Path) -> RunDirectory:
        """The run directory, within a folder.

        Raises:
            NotARun: the archive holds none of this schema version.
        """
        with tarfile.open(self.archive) as packed:
            packed.extractall(folder)
        return RunDirectory.open(folder / self.name)


def recordings(data: Path = DATA) -> list[Recording]:
    """All there are, in order."""
    return [Recording(path) for path in sorted(data.glob("*/*.tar.xz"))]
