"""What continuous integration shows beside its log."""

from __future__ import annotations

import os

from pindiag.cli import console


def step_summary(markdown: str) -> None:
    """Append to the summary of a GitHub Actions step, where there is one; a run does not fail because it cannot."""
    place = os.environ.get("GITHUB_STEP_SUMMARY")
    if not place:
        return
    try:
        with open(place, "a", encoding="utf-8") as summary:
            summary.write(markdown.rstrip("\n") + "\n\n")
    except OSError as error:
        console.note(f"The step's summary {place} cannot be written: {error.strerror}.")
