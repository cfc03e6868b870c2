"""The report of a run on an H200, for people without a GPU.

The package ships its records (`recordings/`): those of tests/data/h200/search_article_floats.tar.xz without its
reports, which are made here, and without the rings of its verifying launches, which no figure needs.
"""

from __future__ import annotations

import tarfile
from importlib import resources
from pathlib import Path

import msgspec

from pindiag.api.found import RUNS
from pindiag.api.outcome import write
from pindiag.errors import TemplateMissing
from pindiag.model import Report
from pindiag.store import RunDirectory

RECORDING = "article_floats.tar.xz"
SAID = "This is a recording: measured on an NVIDIA H200 on 2 December 2026; nothing was measured on this machine."


def demo(output: Path | None = None) -> tuple[Path, Report]:
    """Make the report of the recorded run that pindiag ships; it says that it is a recording.

    Args:
        output: the run directory; None: pindiag-runs/demo-h200, written anew each time.

    Returns:
        The run directory, and its report.

    Raises:
        OutputRefused: it exists, or cannot be written.
        TemplateMissing: the package lacks its recording.
    """
    place = resources.files("pindiag") / "recordings" / RECORDING
    directory = RunDirectory.create(output or RUNS / "demo-h200", force=output is None)
    with directory.filling():
        try:
            with place.open("rb") as packed, tarfile.open(fileobj=packed, mode="r:xz") as archive:
                # What this Python does not have yet, a recording of our own can do without.
                archive.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
                archive.extractall(directory.path)
        except (FileNotFoundError, tarfile.ReadError) as error:
            raise TemplateMissing(
                f"The recording {place} cannot be read: {error}.", "Install pindiag again: pip install pindiag."
            ) from error
        directory.write_spec(msgspec.structs.replace(directory.read_spec(), recording=SAID))
    return directory.path, write(directory, show_paths=False)
