"""The safety gate: whether a configuration gives the batches that the script as written gives, and harms nothing.

Asked by plan, race and analysis alike. Pure: all it knows are the records of a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pindiag.journal import Journal, Launch
from pindiag.model import (
    BuffersWatched,
    Configuration,
    GateBatch,
    GatePass,
    HandlesOpen,
    LoaderChosen,
    OpenHandle,
    Rewritten,
    Safety,
    Treatment,
)

BY_POSITION = ("io.", "zipfile.", "tarfile.")
"""Kinds of handles whose use shows in the position of their file; others are not to be used across a fork at all."""


class Passes(NamedTuple):
    """The same index batches, fetched in one launch."""

    forth: GatePass
    """As written."""
    back: GatePass
    """As written, in reverse order and with another seed; the same as `forth` where nothing differed."""
    own: GatePass


def unsafe(journal: Journal, trial: str) -> str | None:
    """Why a configuration must not be recommended; None where nothing is known against it."""
    made = journal.treatments.get(trial)
    if made is None or not _to_judge(journal, made):
        return None
    judged = safety(journal, made)
    return judged.reason if judged.status == "failed" else None


def safety(journal: Journal, made: Treatment) -> Safety:
    """What the gate says of a configuration: all that speaks against it, or else what was compared."""
    if not _to_judge(journal, made):
        return Safety(status="not_checked", reason="The gate compares configurations of equal batch size only.")
    checks = [check(journal, made) for check in (_batches, _handles, _buffers)]
    failed = [check.reason for check in checks if check.status == "failed"]
    if failed:
        return Safety(status="failed", reason=" ".join(failed))
    unknown = [check.reason for check in checks if check.status == "not_checked"]
    if unknown:
        return Safety(status="not_checked", reason=" ".join(unknown))
    return Safety(status="passed", reason=" ".join(check.reason for check in checks))


def ungated(journal: Journal, made: Treatment) -> bool:
    """Whether batches of a configuration are still to be compared: none were, and they are made in another way."""
    return _to_judge(journal, made) and not _made_alike(journal, made) and _passes(journal, made) is None


def _to_judge(journal: Journal, made: Treatment) -> bool:
    return journal.baseline is not None and made.kind == "configuration" and "batch_size" not in made.changes


def _passed(reason: str) -> Safety:
    return Safety(status="passed", reason=reason)


def _failed(reason: str) -> Safety:
    return Safety(status="failed", reason=reason)


def _unknown(reason: str) -> Safety:
    return Safety(status="not_checked", reason=reason)


# ------------------------------------------------------------------------------------------------------------ batches


def _made_alike(journal: Journal, made: Treatment) -> bool:
    """Whether its batches are made by as many workers and pinned or not, as those of the script as written."""
    return journal.baseline is not None and _making(made.configuration) == _making(journal.baseline)


def _making(configuration: Configuration) -> tuple[int, bool]:
    return configuration.num_workers, configuration.pin_memory


def _passes(journal: Journal, made: Treatment) -> Passes | None:
    """The latest comparison of batches that are made as a configuration makes them."""
    return next((found for launch in reversed(journal.launches) if (found := _in(journal, launch, made))), None)


def _in(journal: Journal, launch: Launch, made: Treatment) -> Passes | None:
    passes = launch.all(GatePass)
    if not passes:
        return None
    as_written = [each for each in passes if journal.trial(each.trial) == journal.baseline_id]
    forth = next((each for each in as_written if not each.backwards), None)
    back = next((each for each in as_written if each.backwards), forth)
    own = next((each for each in passes if _is_like(journal, each, made)), forth if _alone(passes) else None)
    return None if forth is None or back is None or own is None else Passes(forth, back, own)


def _alone(passes: Sequence[GatePass]) -> bool:
    """Whether the gate could not begin: then what it says of the script as written holds for all."""
    return len(passes) == 1


def _is_like(journal: Journal, each: GatePass, made: Treatment) -> bool:
    other = journal.treatments.get(each.trial)
    return (
        other is not None
        and other.kind == "configuration"
        and _making(other.configuration) == _making(made.configuration)
    )


def _batches(journal: Journal, made: Treatment) -> Safety:
    if _made_alike(journal, made):
        return _passed("Its batches are made as those of the script as written.")
    passes = _passes(journal, made)
    if passes is None:
        return _unknown("Batches under this change were not compared with those of the script as written.")
    missing = passes.own.reason or passes.forth.reason or passes.forth.raised or passes.back.raised
    if missing is not None:
        return _unknown(f"Batches under this change could not be compared: {missing}.")
    if passes.own.raised is not None:
        return _failed(f"After {len(passes.own.batches)} batches it raised {passes.own.raised}.")
    if passes.own.changed_later and not passes.forth.changed_later:
        return _failed(
            f"{passes.own.changed_later} of {len(passes.own.batches)} batches had changed when the next one came: "
            "the loader writes into memory that it has handed over."
        )
    if passes.own.iterable and passes.own.workers != passes.forth.workers:
        return _dealt(passes)
    return _compared(passes)


def _dealt(passes: Passes) -> Safety:
    """An iterable dataset under another number of workers."""
    own = passes.own
    first = [batch.content for batch in own.batches[: own.workers]]
    varies = len({batch.content for batch in passes.forth.batches}) > 1
    if varies and len(first) == own.workers > 1 and len(set(first)) == 1:
        return _failed(
            f"All {own.workers} workers give the same batches: this iterable dataset does not split itself among them "
            "(torch.utils.data.get_worker_info)."
        )
    return _unknown("Which batches an iterable dataset gives depends on the number of workers, so none were compared.")


def _compared(passes: Passes) -> Safety:
    forth, back, own = (_by_number(one) for one in passes)
    common = sorted(forth.keys() & back.keys() & own.keys())
    if not common:
        return _unknown("No batch came in time to be compared with one of the script as written.")
    if any(forth[each].layout == back[each].layout != own[each].layout for each in common):
        return _failed("Types or shapes of its batches are not those of the script as written.")
    if any(forth[each].content != back[each].content for each in common):
        return _passed(
            "The script as written does not give the same batch twice for the same indices (random augmentation), "
            "so only types and shapes were compared; they are the same."
        )
    other = sum(forth[each].content != own[each].content for each in common)
    if other:
        return _failed(
            f"{other} of {len(common)} batches differ from those of the script as written for the same indices."
        )
    return _passed(f"{len(common)} batches are bit for bit those of the script as written.")


def _by_number(one: GatePass) -> dict[int, GateBatch]:
    return {batch.batch: batch for batch in one.batches}


# ------------------------------------------------------------------------------------------------------------ handles


def _handles(journal: Journal, made: Treatment) -> Safety:
    passes, own, baseline = _passes(journal, made), made.configuration.num_workers, journal.baseline
    if baseline is not None and own == baseline.num_workers:
        return _passed("It has as many workers as the script as written.")
    if own < 2 or _start_method(journal, passes) not in (None, "fork"):
        return _passed("No open file is shared by workers.")
    seen = _handles_seen(journal)
    if seen is None:
        return _unknown("Open files that workers would share were not looked for.")
    moved = None if passes is None else passes.own.shared_files
    shared = [*[_named(handle) for handle in seen if not _by_position(handle)], *_moved(seen, moved or [])]
    if shared:
        return _about_shared(journal, " and ".join(shared), made)
    if moved is None and seen:
        named = " and ".join(map(_named, seen))
        return _unknown(f"{named} is open before workers are forked; whether they read from it was not seen.")
    return _passed("No open file is shared by workers.")


def _about_shared(journal: Journal, what: str, made: Treatment) -> Safety:
    baseline = journal.baseline
    if baseline is not None and baseline.num_workers > 1:
        return _passed(f"Workers share {what}, as those of the script as written do.")
    return _failed(
        f"{made.configuration.num_workers} workers would share {what}: opened before they are forked, with one "
        "position and state for all. Open it in each worker, at its first item."
    )


def _moved(seen: Sequence[OpenHandle], files: Sequence[str]) -> list[str]:
    """Files that workers read together, by the name that the script has for them where there is one only."""
    by_position = [handle for handle in seen if _by_position(handle)]
    if len(by_position) == len(files) == 1:
        return [f"`{by_position[0].place}` ({files[0]})"]
    return list(files)


def _named(handle: OpenHandle) -> str:
    return f"`{handle.place}` ({handle.kind})"


def _by_position(handle: OpenHandle) -> bool:
    return handle.kind.startswith(BY_POSITION)


def _handles_seen(journal: Journal) -> list[OpenHandle] | None:
    """Of the training loader, in the first launch that tells."""
    for launch in journal.launches:
        chosen = launch.first(LoaderChosen)
        for found in launch.all(HandlesOpen):
            if chosen is not None and found.loader == chosen.loader:
                return found.handles
    return None


def _start_method(journal: Journal, passes: Passes | None) -> str | None:
    if passes is not None and passes.own.start_method is not None:
        return passes.own.start_method
    return None if journal.chosen is None else journal.chosen.start_method


# ------------------------------------------------------------------------------------------------------------ buffers


def _buffers(journal: Journal, made: Treatment) -> Safety:
    watched = [record for launch in journal.launches for record in launch.all(BuffersWatched)]
    if not watched:
        return _unknown("Whether host buffers are written again while a copy may read them was not looked at.")
    if not any(record.copies for record in watched):
        return _passed("No batch is copied to a device.")
    sites = [site for record in watched for site in record.rewritten]
    risky = [site for site in sites if _races(site, made.configuration)]
    new = {site.location for site in risky if journal.baseline is None or not _races(site, journal.baseline)}
    if new:
        return _failed(
            f"The host memory copied at {' and '.join(sorted(new))} is written again without waiting for the device, "
            "while an asynchronous copy may still read it."
        )
    if risky:
        places = " and ".join(sorted({site.location for site in risky}))
        return _passed(
            f"The host memory copied at {places} is written again too soon by the script as written as well."
        )
    return _passed("No host buffer is written again while a copy may read it.")


def unsafe_copies(journal: Journal) -> list[str] | None:
    """Where the script as written copies pinned memory without blocking and writes it again without waiting.

    None where that was not looked at.
    """
    watched = [record for launch in journal.launches for record in launch.all(BuffersWatched)]
    if journal.baseline is None or not watched:
        return None
    return sorted({site.location for record in watched for site in record.rewritten if _races(site, journal.baseline)})


def _races(site: Rewritten, configuration: Configuration) -> bool:
    pinned = site.pinned or (site.of_batch and configuration.pin_memory)
    says = configuration.non_blocking
    asynchronous = says if site.kind == "to" and isinstance(says, bool) else site.non_blocking
    return pinned and asynchronous and not site.waited
