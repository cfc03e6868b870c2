from __future__ import annotations

import pytest
import torch

from pindiag.probe import choice
from pindiag.probe.choice import BACKWARDS, BATCHES, Choice
from pindiag.probe.watch import Made, Watch


class Script:
    def __init__(self):
        self.found = []
        self.choice = Choice(lambda watch, why: self.found.append((watch.made.location, why)))
        self.watches = {}

    def batch(self, name, wait_ns=1):
        made = Made(len(self.watches), name, 0, ())
        watch = self.watches.setdefault(name, Watch(made, None, None, None))
        watch.delivered += 1
        self.choice.yielded(watch, wait_ns)

    def play(self, events):
        for event in events.split():
            if event == "step":
                self.choice.stepped()
            elif event == "backward":
                self.choice.backward()
            elif event.startswith("end:"):
                self.watches[event[4:]].open = False
            else:
                self.batch(event, wait_ns=9 if event == "slow" else 1)
        return self.found[0][0] if self.found else None


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ("train step", "train"),
        ("step train", None),
        ("val train step", None),
        ("val train step train step", "train"),
        ("val val train step", "train"),
        ("val val end:val train step val val end:val train step", "train"),
        ("slow fast step slow fast step", "slow"),
        ("fast slow step fast slow step", "slow"),
        ("train train train train step", "train"),
    ],
)
def test_the_loader_that_feeds_the_step(events, expected):
    assert Script().play(events) == expected


def test_steps_by_hand_are_seen_by_their_backward_passes():
    script = Script()
    assert script.play("train backward " * BACKWARDS) is None
    assert script.play("train backward") == "train"
    assert "backward" in script.found[0][1]


@pytest.mark.parametrize(("has_optimizer", "expected"), [(False, "data"), (True, None)])
def test_inference_is_seen_by_its_batches_unless_an_optimizer_waits(monkeypatch, has_optimizer, expected):
    monkeypatch.setattr(choice, "_has_optimizer", lambda: has_optimizer)
    assert Script().play("data " * BATCHES) == expected


def test_at_the_end_the_loader_that_gave_most_is_left():
    script = Script()
    script.play("few many many")
    script.choice.at_end()
    assert script.found[0][0] == "many"


def test_the_counted_functions_are_put_back():
    before = torch.autograd.backward, torch.autograd.grad
    watching = Choice(lambda *_: None)
    watching.install()
    assert torch.autograd.backward is not before[0]
    watching.uninstall()
    assert (torch.autograd.backward, torch.autograd.grad) == before


def test_an_optimizer_is_noticed_wherever_it_is():
    assert not choice._has_optimizer()
    kept = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    assert choice._has_optimizer()
    del kept
