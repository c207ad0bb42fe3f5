"""Answers the questions of `LearnerEnv`s to their opponents: one environment alone, or several together."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from pz_policymap.learner.episodes import Asking, Result
from pz_policymap.learner.global_generators import IsolatedRandomness
from pz_policymap.policies.predict import Ask
from pz_policymap.policies.seat_policies import actions_of


def answered(asking: Asking[Result], isolated: IsolatedRandomness | None = None) -> Result:
    """Returns the result of a generator, whose questions the policies answer as they come.

    Args:
        asking: The generator.
        isolated: The global generators to use meanwhile; None: they stay.
    """
    actions: Any = None
    with nullcontext() if isolated is None else isolated.in_place():
        while True:
            try:
                asks = asking.send(actions)
            except StopIteration as end:
                result: Result = end.value
                return result
            actions = actions_of(asks)  # outside the `try`, since a policy may raise StopIteration, too


def answered_together(askings: Sequence[Asking[Result]]) -> list[Result]:
    """Returns the results of several generators, whose questions are answered together.

    In each round, the questions of all environments that have some go to their policies, in one batch per object with
    `predict`. Environments with fewer rounds wait.
    """
    results: list[Any] = [None] * len(askings)
    actions: dict[int, Any] = dict.fromkeys(range(len(askings)))
    while actions:
        asked: list[Ask] = []
        counts: dict[int, int] = {}
        for place, given in actions.items():
            try:
                asks = askings[place].send(given)
            except StopIteration as end:  # noqa: PERF203  # it ends one of them
                results[place] = end.value
            else:
                asked += asks
                counts[place] = len(asks)
        answers = iter(actions_of(asked))
        actions = {place: [next(answers) for _ in range(count)] for place, count in counts.items()}
    return results
