"""Who runs in the next live round: configurations, tweaks and ablations, as many as there is time for."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from pindiag.model import NextBlocks, Treatment
from pindiag.plan.budget import ENDING_SHARE, FRESH_SHARE, Budget
from pindiag.plan.contenders import FEWEST_CONTENDERS, FEWEST_TRIED, WORTH_KNOWING, contenders
from pindiag.plan.decision import decided
from pindiag.plan.extras import ablations, transfers, tweaks
from pindiag.plan.gates import MOST_GATED
from pindiag.plan.known import Known
from pindiag.plan.prediction import CLEARLY, Bound
from pindiag.plan.search import Search
from pindiag.plan.threads import Threads
from pindiag.plan.treatments import COMPUTE_ONLY, baseline_treatment
from pindiag.race import AS_GOOD_AS_THE_BEST, beside, drifts, floor, standings
from pindiag.stats import FEWEST_FOR_INTERVAL, Mean

KNOWN_WELL = 0.05
"""Half-width of a ceiling's log ratio at which more rounds add nothing that a reader acts on."""
ENOUGH_ROUNDS = 6
NOT_REACHED = "not run: the search ended before its turn"


class Lineup:
    """Reckons with blocks as they turned out so far, and leaves their share to what comes after the race."""

    def __init__(self, known: Known, budget: Budget, threads: Threads) -> None:
        self._known = known
        self._budget = budget
        self._threads = threads
        self._search = Search(known, threads)

    @cached_property
    def configurations(self) -> list[Treatment]:
        """What the first round compares: what a search begins with, or all that is wanted and can be swapped."""
        if self._known.searches:
            return self._search.openers
        return [made for made in self._known.wanted if self.stays(made)]

    @cached_property
    def extras(self) -> list[Treatment]:
        """Tweaks and ablations that are still to be known better; `compute_only` has rounds of its own."""
        found = self._known.journal.chosen
        made = [] if found is None else [*tweaks(self._known, self._threads), *ablations(found)]
        return [extra for extra in made if self.stays(extra) and not self.known_well(extra.id)]

    def stays(self, made: Treatment) -> bool:
        """Whether a treatment may run in a live launch."""
        swappable = made.kind != "configuration" or not self._known.runs_fresh(made)
        return swappable and not self._known.out(made.id)

    def known_well(self, extra: str) -> bool:
        """Whether a tweak's or an ablation's ratio is known as well as it needs to be.

        A ceiling, or a tweak that brings nothing, once it is beyond or below what is worth knowing; a tweak that brings
        something is a fix, whose gain is told.
        """
        ratio = self._beside.get(extra)
        if ratio is None or ratio.ci95 is None or ratio.half_width is None:
            return False
        told = not ratio.ci95[0] <= WORTH_KNOWING <= ratio.ci95[1]
        brings = ratio.ci95[0] > WORTH_KNOWING and self._known.journal.treatments[extra].kind == "tweak"
        return (told and not brings) or ratio.count >= ENOUGH_ROUNDS or ratio.half_width <= KNOWN_WELL

    @property
    def asks_compute_only(self) -> bool:
        """Whether a search has no other ceiling of the step: without transfers no host batch is replayed."""
        found = self._known.journal.chosen
        return self._known.searches and found is not None and not transfers(found)

    def settled(self, lineup: NextBlocks) -> bool:
        """Whether a sweep needs no further round: all members have an interval, and who leads is decided."""
        alive = [made for made in self._members(lineup) if made.competes]
        return self._known.spec.sweep and self.all_told(lineup) and decided(self._known, alive)

    @property
    def leader_untold(self) -> bool:
        """Whether a search leads by what had too few rounds to be chosen: one more is worth the verification's time."""
        leader, (noise, _) = self._search.prediction.leader, floor(self._known.journal)
        doubt = CLEARLY if noise is None else max(noise, AS_GOOD_AS_THE_BEST)
        return self._known.searches and leader.ci95 is None and leader.value > doubt * self._best_told

    @property
    def _best_told(self) -> float:
        told = (ratio.value for ratio in standings(self._known.journal).values() if ratio.ci95 is not None)
        return max(told, default=1.0)

    def all_told(self, lineup: NextBlocks) -> bool:
        """Whether all members of a round have had enough of them for an interval."""
        ratios = self._beside | standings(self._known.journal)
        told = {name for name, ratio in ratios.items() if ratio.count >= FEWEST_FOR_INTERVAL}
        return all(made.id in told for made in self._members(lineup))

    def _members(self, lineup: NextBlocks) -> list[Treatment]:
        own = {self._known.baseline, *lineup.skipped}
        return [made for made in lineup.planned if made.id not in own]

    @cached_property
    def _beside(self) -> dict[str, Mean]:
        return beside(self._known.journal)

    # ---------------------------------------------------------------------------------------------------- seconds

    def left_s(self, share: float) -> float:
        """What a share of the budget leaves to the race beside ceilings, windows and treatments that run fresh."""
        return self._budget.left_s(share) - self._later_s

    @cached_property
    def _later_s(self) -> float:
        ceilings_s = FEWEST_FOR_INTERVAL * self._budget.blocks_s([self._known.baseline, COMPUTE_ONLY])
        gates = MOST_GATED if self._known.spec.sweep else 0
        windows_s = (1 + len(self.configurations) + gates) * self._budget.window_s
        return min(ceilings_s + windows_s, ENDING_SHARE * self._race_s) + self.for_fresh_s

    @cached_property
    def for_fresh_s(self) -> float:
        """What three rounds of the treatments that run fresh take, or as much as the live race can spare."""
        fresh = [made for made in self._known.wanted if self._known.runs_fresh(made) and not self._known.out(made.id)]
        launches = FEWEST_FOR_INTERVAL * (2 + len(fresh)) if fresh else 0
        return min(launches * self._budget.launch_s, FRESH_SHARE * self._race_s)

    @property
    def _race_s(self) -> float:
        return self._budget.race_share * self._budget.whole_s

    def two_more_rounds_s(self, extras: int) -> float:
        """What two more rounds take at least: the baseline twice, the leader, and what is beside the race."""
        return self._more_rounds * (3 + extras) * self._budget.any_block_s

    @property
    def _more_rounds(self) -> int:
        return min(self._known.spec.rounds, FEWEST_FOR_INTERVAL) - 1

    # ---------------------------------------------------------------------------------------------------- rounds

    def first(self) -> NextBlocks:
        """Everyone, but for those that the budget leaves no time for; it carries no blocks yet.

        Of an exhaustive sweep, no configuration is left out.
        """
        block_s, left_s = self._budget.any_block_s, self.left_s(self._budget.race_share)
        configurations, extras = self.configurations, self.extras
        least = 2 + min(FEWEST_TRIED, len(configurations))
        spare_s = left_s - least * block_s - self.two_more_rounds_s(0)
        fitting = extras[: max(int(spare_s / (block_s * (1 + self._more_rounds))), 0)]
        room = int((left_s - self.two_more_rounds_s(len(fitting))) / block_s) - 2 - len(fitting)
        most = len(configurations) if self._known.spec.exhaustive else max(room, FEWEST_TRIED)
        late = [*configurations[most:], *extras[len(fitting) :]]
        reason = f"the budget of {self._known.spec.budget_s:.0f} s left no time for it"
        waiting = [made for made in self._search.untried if made not in configurations] if self._known.searches else []
        skipped = {made.id: reason for made in late} | {made.id: NOT_REACHED for made in waiting}
        return self._lineup([*configurations, *extras, *waiting], skipped)

    def later(self, place: int, members: Sequence[Treatment]) -> NextBlocks:
        """Those that stay; when time is short, those that cannot win give way first."""
        raced = [made.id for made in members if made.kind == "configuration" and self.stays(made)]
        alive = contenders(self._known, raced)
        left_s = self.left_s(self._budget.race_share)
        extras = self._later_extras(place, alive, left_s)
        room = self._room(place, alive, extras, left_s)
        short = room < len(alive) and not self._known.spec.exhaustive
        hopeless = self._hopeless(alive if short else [])
        kept = [made for made in alive if made.id not in hopeless][:room]
        if self._known.searches:
            return self._searched(place, kept, extras, room)
        rate, skipped = self._search.prediction.baseline_rate if hopeless else 0.0, {}
        predicted = {name: most.ratio * rate for name, most in hopeless.items()}
        for name, most in hopeless.items():
            skipped[name] = f"predicted at most {predicted[name]:.0f} samples/s, because {most.because}"
        return self._lineup([*kept, *extras], skipped, predicted)

    def _later_extras(self, place: int, alive: Sequence[Treatment], left_s: float) -> list[Treatment]:
        """Those that run, while time lasts; and those that the first round did not have, where three of theirs fit."""
        had = self._known.journal.treatments.keys() - self._known.journal.skipped.keys()
        running = [extra for extra in self.extras if extra.id in had]
        for_three_s = left_s / max(FEWEST_FOR_INTERVAL - place + 1, 1)
        while running and self._round_s(alive[:1], running) > for_three_s:
            running.pop()
        late = [extra for extra in self.extras if extra.id not in had]
        if place + FEWEST_FOR_INTERVAL - 1 > self._known.most_rounds:
            return running
        for extra in late:
            if FEWEST_FOR_INTERVAL * self._round_s(alive, [*running, extra]) <= left_s:
                running.append(extra)
        return running

    def _searched(self, place: int, kept: Sequence[Treatment], extras: Sequence[Treatment], room: int) -> NextBlocks:
        """The next candidate joins where there is room for it, and what is left of them is named with its reason.

        One that promises clearly more than the leader takes the place of the last: knowing the leader better is worth
        less than finding a better one.
        """
        candidate = self._search.next(place) if self._takes_another else None
        if candidate is not None and len(kept) >= room and self._search.promises_more(candidate):
            kept = kept[: max(room - 1, 1)]
        elif len(kept) >= room:
            candidate = None
        joining = [] if candidate is None else [candidate]
        left = [made for made in self._search.untried if made not in joining]
        skipped = {made.id: self._search.reason(made) for made in left}
        return self._lineup([*kept, *joining, *extras, *left], skipped, self._search.predicted)

    @property
    def _takes_another(self) -> bool:
        """Whether three rounds of another candidate alone would fit, and live rounds can be believed."""
        needed_s = FEWEST_FOR_INTERVAL * (self._round_s([], []) + self._budget.any_block_s)
        return needed_s <= self._budget.left_s() and not drifts(self._known.journal)

    def _room(self, place: int, alive: Sequence[Treatment], extras: Sequence[Treatment], left_s: float) -> int:
        """How many configurations fit beside what else a round has; extras are mostly known after three rounds.

        Configurations give way until three are left, then rounds until three are left, then configurations again.
        """
        to_three = max(FEWEST_FOR_INTERVAL - place + 1, 1)
        mean_s = self._budget.blocks_s(made.id for made in alive) / len(alive) if alive else self._budget.any_block_s
        for_configurations_s = left_s - to_three * (self._round_s([], extras) - self._round_s([], []))
        rooms = [
            int((for_configurations_s / rounds - self._round_s([], [])) / mean_s)
            for rounds in (max(self._known.spec.rounds - place + 1, 1), to_three)
        ]
        return max(rooms[0], min(FEWEST_CONTENDERS, rooms[1]), 1)

    def _round_s(self, configurations: Sequence[Treatment], extras: Sequence[Treatment]) -> float:
        members = [made.id for made in (*configurations, *extras)]
        return self._budget.blocks_s([self._known.baseline, self._known.baseline, *members])

    def _hopeless(self, alive: Sequence[Treatment]) -> dict[str, Bound]:
        """What those that cannot win reach at most: of these, and of what had no turn in the first round."""
        skipped = self._known.journal.skipped
        late = [made for made in self.configurations if made.id in skipped]
        if not alive and not late:
            return {}
        prediction = self._search.prediction
        reached = ((made.id, prediction.cannot_win(made)) for made in (*alive, *late))
        return {name: most for name, most in reached if most is not None}

    def _lineup(
        self, members: Sequence[Treatment], skipped: dict[str, str], predicted: dict[str, float] | None = None
    ) -> NextBlocks:
        baseline = self._known.journal.baseline
        own = [] if baseline is None else [baseline_treatment(baseline)]
        return NextBlocks(planned=[*own, *members], skipped=skipped, predicted=predicted or {})
