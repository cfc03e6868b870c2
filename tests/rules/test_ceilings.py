"""What ceilings say of the recorded live runs: the figures of DESIGN.md section 1 and of the report's mock."""

import pytest

from pindiag.rules import Inputs, ceilings
from pindiag.rules.inputs import Facts

from .build import inputs
from .recorded import recorded

MLP = Facts(recorded("live_mlp", baseline="nw4-pin0-nb0"))
PINNED = Facts(recorded("live_mlp", baseline="nw4-pin1-nb1"))
RESNET = Facts(recorded("live_rn", baseline="nw4-pin1-nb1"))


def shown(experiment):
    low, high = experiment.step.interval
    return round(experiment.effect, 2), (round(low, 2), round(high, 2))


@pytest.mark.parametrize(
    ("experiment", "figures", "names"),
    [
        (ceilings.compute(MLP), (7.96, (6.51, 9.74)), ("compute_only", "nw4-pin0-nb0")),
        (ceilings.pin_thread_cost(MLP), (0.54, (0.44, 0.66)), ("loader_only-nw4-pin1", "loader_only-nw4-pin0")),
        (
            ceilings.pinned_copies(MLP, non_blocking=False),
            (2.66, (1.96, 3.61)),
            ("host_batch-pin1-nb0", "host_batch-pin0-nb0"),
        ),
        (ceilings.perfect_loader(MLP), (2.06, (1.46, 2.89)), ("host_batch-pin0-nb0", "nw4-pin0-nb0")),
        (ceilings.loader_alone(PINNED), (1.04, (0.71, 1.52)), ("loader_only-nw4-pin1", "nw4-pin1-nb1")),
        (ceilings.workers_alone(PINNED), (1.94, (1.47, 2.55)), ("loader_only-nw4-pin0", "nw4-pin1-nb1")),
        (ceilings.unblocked_copies(RESNET), (1.03, (1.02, 1.04)), ("host_batch-pin1-nb1", "host_batch-pin1-nb0")),
    ],
)
def test_each_has_its_interval_and_names_the_two_trials_that_it_comes_from(experiment, figures, names):
    assert shown(experiment) == figures
    assert (experiment.trial.id, experiment.over.id) == names


def test_a_quotient_of_ceilings_from_rounds_of_their_own_has_the_errors_of_both():
    apart = {
        "host_batch-pin0-nb0": {"ratio": 2.0, "ci": [1.8, 2.222]},
        "compute_only": {"ratio": 8.0, "ci": [7.2, 8.889]},
    }
    facts = Facts(inputs(baseline="nw4-pin0-nb0", facts_={"accelerator_present": True}, trials=apart))
    ratio, (low, high) = shown(ceilings.perfect_copies(facts))
    assert ratio == 4.0
    assert 3.4 < low < 3.5 and 4.6 < high < 4.7


def test_which_stage_is_as_slow_as_training():
    assert ceilings.as_slow_as_training(ceilings.loader_alone(PINNED))
    assert ceilings.outpaces(ceilings.workers_alone(PINNED))
    assert not ceilings.as_slow_as_training(ceilings.workers_alone(MLP))
    assert ceilings.keeps_up(RESNET)
    assert not ceilings.keeps_up(MLP)


def test_without_an_accelerator_a_perfect_loader_is_the_step_alone():
    alone = {"compute_only": {"ratio": 5.7, "ci": [5.4, 6.0]}}
    facts = Facts(inputs(facts_={"accelerator_present": False}, trials=alone))
    assert ceilings.perfect_loader(facts).trial.id == "compute_only"
    assert ceilings.perfect_loader(Facts(inputs(facts_={"accelerator_present": True}, trials=alone))) is None


def test_what_was_not_measured_is_none_and_says_nothing():
    facts = Facts(inputs(baseline="nw4-pin1-nb1", trials={"compute_only": {"status": "failed"}}))
    for ceiling in (ceilings.compute, ceilings.perfect_loader, ceilings.perfect_copies, ceilings.unblocked_copies):
        assert ceiling(facts) is None
    for ceiling in (ceilings.loader_alone, ceilings.workers_alone, ceilings.pin_thread_cost):
        assert ceiling(facts) is None
    assert not ceilings.keeps_up(facts)
    assert ceilings.in_words(facts) == ceilings.in_words(Facts(Inputs())) == ""
