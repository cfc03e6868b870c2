"""Answers to calls that wait for the device, given without waiting."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import torch


class Answer(NamedTuple):
    """What a call got, and the shape and dtype that it asked of (None where it asked of no tensor)."""

    asked: tuple[torch.Size, torch.dtype] | None
    given: Any


class Place:
    """The answers that one place in the source got in a step, in order."""

    def __init__(self) -> None:
        self._answers: list[Answer] = []
        self._turn = 0

    def again(self, args: tuple[Any, ...]) -> Answer | None:
        """A copy of the answer to this call, None where it is not known."""
        if self._turn >= len(self._answers) or self._answers[self._turn].asked != _asked(args):
            return None
        answer = self._answers[self._turn]
        self._turn += 1
        return Answer(answer.asked, _copy(answer.given))

    def remember(self, args: tuple[Any, ...], given: Any) -> None:
        """The answer that this call really got."""
        self._answers[self._turn : self._turn + 1] = [Answer(_asked(args), _copy(given))]
        self._turn += 1

    def next_step(self) -> None:
        """A new step begins."""
        self._turn = 0


class LazySync:
    """Gives calls that wait for the device what the same place in the source got in an earlier step.

    The n-th call of a place in a step is given what its n-th call got when it was first made, if it asks for the same
    shape and dtype; so a loop that waits until something has converged still ends. What is given is stale: only for
    blocks whose training is thrown away. Whoever uses one calls `next_step` at each step's begin; without it every call
    is real.
    """

    def __init__(self) -> None:
        self._places: dict[tuple[str, str], Place] = {}

    def next_step(self) -> None:
        """A new step begins."""
        for place in self._places.values():
            place.next_step()

    def place(self, location: str, kind: str) -> Place:
        """What is known of a place."""
        return self._places.setdefault((location, kind), Place())


def _asked(args: tuple[Any, ...]) -> Any:
    tensor = args[0] if args else None
    return (tensor.shape, tensor.dtype) if isinstance(tensor, torch.Tensor) else None


def _copy(given: Any) -> Any:
    return given.clone() if isinstance(given, torch.Tensor) else copy.deepcopy(given)
