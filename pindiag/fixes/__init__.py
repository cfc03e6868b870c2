"""Edits of the user's source that carry out a fix, shown as a diff and never applied here."""

from __future__ import annotations

import dataclasses
import posixpath
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from pindiag.fixes.arguments import Value
from pindiag.fixes.callee import Callee, callee
from pindiag.fixes.inserted import KEEP_THREADS
from pindiag.fixes.patch import FEWER_THREADS, GUARD, Patch, patch, patch_loader, patch_non_blocking, unified_diff
from pindiag.model import Finding, Fix

__all__ = ["GUARD", "Patch", "Places", "patch_loader", "patch_non_blocking", "relative", "unified_diff"]

BY_HAND = {
    "intraop_threads": f"{KEEP_THREADS}  # before the loader is first iterated",
    "fewer_intraop_threads": "torch.set_num_threads({})  # before training begins",
    "lazy_sync": "total += loss.detach()  # in place of loss.item(); total.item() every hundredth step",
    "worker_threads": "worker_init_fn=lambda worker: threadpoolctl.threadpool_limits({})  # of the DataLoader",
    "worker_affinity": "os.sched_setaffinity(0, range(os.cpu_count()))  # first thing in the loader's worker_init_fn",
}
"""Tweaks as lines of code."""
UNSAFE = {
    "lazy_sync": "what becomes of the value is for the script's author to say",
    "worker_threads": "which library starts the threads, and what it offers to limit them, pindiag does not know",
    "worker_affinity": "what took the CPUs away, and whether it meant to, pindiag does not know",
}
"""Tweaks that no edit carries out, with the reason."""
INSTALLED = ("/site-packages/", "/dist-packages/")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Places:
    """Where the user's source can be changed.

    Attributes:
        loader: file:line of the DataLoader call.
        transfers: file:line of each copy to the device.
        sources: the files' texts by the same paths.
        root: folder that a diff's paths are relative to.
        maker: the library's module that makes the loader; None: the script does.
    """

    loader: str | None
    transfers: Sequence[str]
    sources: Mapping[str, str]
    root: str = ""
    maker: str | None = None

    def complete(self, finding: Finding) -> Finding:
        """The finding with each of its fixes as a patch or a snippet; see `fix_for`."""
        guard = finding.cause == "pin_without_accelerator"
        return msgspec.structs.replace(finding, fixes=[self.fix_for(fix, guard=guard) for fix in finding.fixes])

    def fix_for(self, fix: Fix, *, guard: bool = False) -> Fix:
        """Carry out a fix's changes in the user's files.

        Args:
            fix: what to change, from a rule.
            guard: pin only where there is an accelerator, in place of never.

        Returns:
            The fix with its location; with one diff over all files, or None where nothing could be edited or all is so
            already; with a snippet of what the diff leaves to the user, and why; and with its arguments as they are
            written where a framework makes the loader. One that failed the safety gate comes back as it is, for
            nobody is to apply it.
        """
        if fix.safety.status == "failed":
            return fix
        called = callee(self.maker)
        wanted = fix.changes.get("non_blocking")
        places = list(self.transfers) if isinstance(wanted, bool) else []
        changes = _of_loader(fix, called, guard=guard, moves=self.loader in places)
        if "non_blocking" in changes:
            places = [place for place in places if place != self.loader]
        patches = _patches(self.loader, called, changes, self.sources, places=places, wanted=bool(wanted))
        refused = {name: reason for each in patches for name, reason in each.refused.items()}
        if isinstance(wanted, bool) and not places and "non_blocking" not in changes:
            refused["non_blocking"] = "no copy to the device was seen in the script"
        refused |= {name: reason for name, reason in UNSAFE.items() if name in fix.changes}
        own, _ = called.translated(changes)
        at_loader = changes.keys() - {FEWER_THREADS}
        written = called.written(changes) if called.makers and own else None
        diff = "".join(unified_diff(relative(each.path, self.root), each.before, each.after) for each in patches)
        return msgspec.structs.replace(
            fix,
            location=fix.location
            or (_place(called, patches) or self.loader if at_loader else next(iter(places), None)),
            patch=diff or None,
            snippet=_snippet({**called.defaults, **fix.changes, **changes, **own}, refused),
            summary=fix.summary.replace(_plain(fix), written) if written else fix.summary,
            written=written,
            by_hand=[name for name in fix.changes if called.keywords.get(name, name) in refused],
        )


def _of_loader(fix: Fix, called: Callee, *, guard: bool, moves: bool) -> dict[str, Value]:
    """What changes in the call that takes the loader's arguments; a framework's may say as well how batches move."""
    elsewhere = {*UNSAFE, *(() if moves and "non_blocking" in called.keywords else ("non_blocking",))}
    changes: dict[str, Value] = {name: value for name, value in fix.changes.items() if name not in elsewhere}
    return {**changes, "pin_memory": GUARD} if guard else changes


def _plain(fix: Fix) -> str:
    """Its changes as arguments of the loader."""
    return ", ".join(f"{name}={value!r}" for name, value in fix.changes.items() if name not in BY_HAND)


def _place(called: Callee, patches: Iterable[Patch]) -> str | None:
    """Where the call of a framework stands that takes the loader's arguments."""
    found = (f"{each.path}:{each.line}" for each in patches if each.line is not None)
    return next(found, None) if called.makers else None


def _patches(
    loader: str | None,
    called: Callee,
    changes: Mapping[str, Value],
    sources: Mapping[str, str],
    *,
    places: list[str],
    wanted: bool,
) -> list[Patch]:
    """One patch a file."""
    loader_file, loader_line = _split(loader) if loader and changes else ("", None)
    lines: dict[str, list[int]] = {loader_file: []} if loader_file else {}
    for place in places:
        file, line = _split(place)
        lines.setdefault(file, []).append(line)
    patches = []
    for file, at in sorted(lines.items()):
        own = changes if file == loader_file else {}
        reason = _untouchable(file, sources)
        if reason:
            patches.append(_refusal([*own, *(["non_blocking"] if at else [])], reason))
            continue
        patches.append(
            patch(
                sources[file],
                file,
                loader_line=loader_line,
                changes=own,
                transfer_lines=at,
                non_blocking=wanted,
                callee=called,
            )
        )
    if changes and not loader_file:
        patches.append(_refusal(list(changes), "the place of the DataLoader is not known"))
    return patches


def _refusal(names: list[str], reason: str) -> Patch:
    return Patch("", "", "", dict.fromkeys(names, reason))


def _untouchable(file: str, sources: Mapping[str, str]) -> str | None:
    if any(part in file for part in INSTALLED):
        return f"{posixpath.basename(file)} belongs to an installed package"
    return None if file in sources else f"the text of {posixpath.basename(file)} was not kept"


def _snippet(changes: Mapping[str, Value], refused: Mapping[str, str]) -> str | None:
    """What the user has to write by hand, each with the reason why it is not in the diff."""
    lines = [
        f"{BY_HAND.get(name, f'{name}={{}}').format(changes.get(name))}  # not in the patch: {reason}"
        for name, reason in refused.items()
    ]
    return "\n".join(lines) or None


def _split(place: str) -> tuple[str, int]:
    file, _, line = place.rpartition(":")
    return (file, int(line)) if line.isdigit() else (place, 0)


def relative(path: str, root: str) -> str:
    """The name that a diff gives a file: below `root` relative to it, else the path itself."""
    inside = root and path.startswith(root.rstrip("/") + "/")
    return posixpath.relpath(path, root) if inside else path
