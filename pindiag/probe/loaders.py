"""The DataLoaders of a launch, and which of them trains."""

from __future__ import annotations

import os
import sys
import weakref
from types import FrameType
from typing import Any, NamedTuple

from . import loader
from .callsite import Place, is_user_code, user_location
from .epochs import note_set_epoch
from .recorder import Recorder
from .watch import Made

_MADE = "_pindiag_made"


class Origin(NamedTuple):
    """Where a loader was made."""

    location: str
    """file:line in the target."""
    maker: str | None = None
    """The library's module that made it of its own accord; None: the target did."""


class Loaders:
    """All DataLoaders that the target made.

    Args:
        spec: the parent's `ProbeSpec`, as plain JSON.
        recorder: where records go.

    Attributes:
        chosen: the training loader, once it is known.
    """

    def __init__(self, spec: dict[str, Any], recorder: Recorder) -> None:
        self.chosen: Made | None = None
        self._key = spec["loader"]
        self._place = spec["loader_place"]
        self._recorder = recorder
        self._made: list[Made] = []
        self._known: list[weakref.ref[Any]] = []

    @property
    def is_told(self) -> bool:
        """Whether the parent says which one trains."""
        return bool(self._key or self._place)

    @property
    def locations(self) -> list[str]:
        """Where they were made."""
        return sorted({made.location for made in self._made})

    def ordinal_at(self, location: str) -> int:
        """How many were made there so far."""
        return sum(made.location == location for made in self._made)

    def is_named(self, location: str, ordinal: int) -> bool:
        """Whether an earlier launch found the training loader here."""
        return bool(self._key == {"location": location, "ordinal": ordinal})

    def origin_of(self, new: Any, dataset: Any) -> Origin:
        """Where the target makes a loader; for one that a library makes of the target's own, where that one was made.

        Args:
            new: the one that is being constructed.
            dataset: what it is going to serve.
        """
        caller = calling(new, sys._getframe(3))
        if caller is None or is_user_code(caller.f_code):
            return Origin(user_location(3))
        known = (loader() for loader in reversed(self._known))
        own = next((loader for loader in known if loader is not None and loader.dataset is dataset), None)
        if own is not None:
            made: Made = own.__dict__[_MADE]
            return Origin(made.location, made.maker)
        return Origin(user_location(3), caller.f_globals.get("__name__"))

    def made(self, new: Any, origin: Origin, ordinal: int, stack: tuple[Place, ...] = ()) -> Made:
        """One was constructed, in these calls of the target's own; none where that is not known."""
        made = Made(len(self._made), origin.location, ordinal, loader.shape_of(new), origin.maker, stack)
        self._made.append(made)
        self._known.append(weakref.ref(new))
        new.__dict__[_MADE] = made
        note_set_epoch(new)
        self._recorder.write(
            "loader_made",
            loader=made.number,
            key=made.key,
            class_name=type(new).__name__,
            dataset_class=type(new.dataset).__name__,
            configuration=loader.configuration(new, new.pin_memory, None),
            maker=origin.maker,
        )
        return made

    def made_of(self, known: Any) -> Made:
        """The construction of one; a copy, which had none, counts as made where it is first seen."""
        made: Made | None = known.__dict__.get(_MADE)
        return made if made is not None else self.made(known, Origin(user_location(4)), 0)

    def trains(self, made: Made) -> bool:
        """Whether this is the training loader, or one that the script made again in its place."""
        chosen = self.chosen
        if chosen is not None:
            again = made.location == chosen.location and made.shape == chosen.shape and made.ordinal > chosen.ordinal
            return made.number == chosen.number or again
        if self._key is not None:
            return self.is_named(made.location, made.ordinal)
        return self._place is not None and is_place(made.location, self._place)


def _constructs(frame: FrameType, new: Any) -> bool:
    """Whether a frame was given the object as it is being made: a constructor, or what a library put around one."""
    code = frame.f_code
    return code.co_argcount > 0 and frame.f_locals.get(code.co_varnames[0]) is new


def calling(new: Any, frame: FrameType | None) -> FrameType | None:
    """The code that calls for this object, through whatever constructors of its classes."""
    while frame is not None and _constructs(frame, new):
        frame = frame.f_back
    return frame


def is_place(location: str, place: str) -> bool:
    """Whether `--loader FILE:LINE` names a location; FILE may be a name or any end of the path."""
    file, _, line = place.rpartition(":")
    location_file, _, location_line = location.rpartition(":")
    if line != location_line:
        return False
    return location_file == os.path.abspath(file) or location_file.endswith(os.sep + os.path.normpath(file))
