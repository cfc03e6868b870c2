"""How launches ended, where that was not as planned: one sentence each."""

from __future__ import annotations

from pindiag.journal import Launch
from pindiag.model import DatasetChanged, TargetEnded, TargetFailed


def in_words(launch: Launch) -> str | None:
    """What a reader should know of a launch's end; None: it went as planned."""
    changed = launch.first(DatasetChanged)
    told = [None if changed is None else _changed(changed), _end(launch)]
    return "; ".join(each for each in told if each is not None) or None


def _changed(changed: DatasetChanged) -> str:
    return (
        f"the dataset changed while it served in the main process ({changed.what}): blocks after number "
        f"{changed.block} do not count, and what runs without workers got launches of its own"
    )


def _end(launch: Launch) -> str | None:
    ended, over, failed = launch.ended, launch.first(TargetEnded), launch.first(TargetFailed)
    if failed is not None and launch.past_natural_end:
        return (
            f"the script bears no more steps than its own epochs have ({_first_line(failed)}): "
            "launches after this one left it its natural epochs"
        )
    if ended is None or ended.reason is not None:
        return None if ended is None else ended.reason
    had_its_block = launch.isolation == "fresh" and launch.measured
    if over is not None and over.how in ("finished", "exit") and ended.status == "ok" and not had_its_block:
        return (
            f"the script ended by itself after {over.steps} steps, before all was measured: "
            "what was left had to wait for another launch"
        )
    return None


def _first_line(failed: TargetFailed) -> str:
    lines = failed.message.strip().splitlines()
    return f"{failed.exception}: {lines[0]}" if lines else failed.exception
