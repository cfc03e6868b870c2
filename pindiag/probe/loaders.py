"""The DataLoaders of a launch, and which of them trains."""

from __future__ import annotations

import os
from typing import Any

from . import loader
from .callsite import user_location
from .epochs import note_set_epoch
from .recorder import Recorder
from .watch import Made

_MADE = "_pindiag_made"


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

    def made(self, new: Any, location: str, ordinal: int) -> Made:
        """One was constructed."""
        made = Made(len(self._made), location, ordinal, loader.shape_of(new))
        self._made.append(made)
        new.__dict__[_MADE] = made
        note_set_epoch(new)
        self._recorder.write(
            "loader_made",
            loader=made.number,
            key=made.key,
            class_name=type(new).__name__,
            dataset_class=type(new.dataset).__name__,
            configuration=loader.configuration(new, new.pin_memory, None),
        )
        return made

    def made_of(self, known: Any) -> Made:
        """The construction of one; a copy, which had none, counts as made where it is first seen."""
        made: Made | None = known.__dict__.get(_MADE)
        return made if made is not None else self.made(known, user_location(4), 0)

    def trains(self, made: Made) -> bool:
        """Whether this is the training loader, or one that the script made again in its place."""
        chosen = self.chosen
        if chosen is not None:
            again = made.location == chosen.location and made.shape == chosen.shape and made.ordinal > chosen.ordinal
            return made.number == chosen.number or again
        if self._key is not None:
            return self.is_named(made.location, made.ordinal)
        return self._place is not None and is_place(made.location, self._place)


def is_place(location: str, place: str) -> bool:
    """Whether `--loader FILE:LINE` names a location; FILE may be a name or any end of the path."""
    file, _, line = place.rpartition(":")
    location_file, _, location_line = location.rpartition(":")
    if line != location_line:
        return False
    return location_file == os.path.abspath(file) or location_file.endswith(os.sep + os.path.normpath(file))
