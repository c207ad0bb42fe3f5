"""Whether an episode can be replayed: in a used environment, and wrapped."""

from __future__ import annotations

import copy
from typing import Any

from pz_policymap.checking.contract import Make, failure, failure_text
from pz_policymap.checking.findings import NOTE, OK, PROBLEM, Finding
from pz_policymap.checking.random_play import random_episode


def replay_findings(make: Make, wrapped: Make, api: str, info_key: str, steps: int) -> list[Finding]:
    """Returns whether an episode is the same in a new environment, in a used one, and wrapped."""
    from gymnasium.utils.env_checker import data_equivalence

    try:
        env = make()
        first, again, other = (_trace(one, api, info_key, steps) for one in (env, env, make()))
    except Exception as error:  # noqa: BLE001  # any error is a finding
        return [failure("an episode cannot be replayed", error)]
    try:
        tagged = _trace(wrapped(), api, info_key, steps)
    except Exception as error:  # noqa: BLE001  # the bare one raised none
        text = f"an episode plays bare and fails wrapped: {failure_text(error)}"
        return [Finding(PROBLEM, text, "please report it, with the environment", "pz_policymap")]
    if not data_equivalence(first, other):
        return [Finding(NOTE, "the same seed gives different episodes, so wrapped and bare cannot be compared")]
    found = []
    if not data_equivalence(first, again):
        found.append(
            Finding(
                PROBLEM,
                "reset(seed=s) gives another episode in a used environment than in a new environment",
                "reset must restore all state, or a resumed run and other --jobs differ",
                "environment",
            )
        )
    if not data_equivalence(first, tagged):
        text = "wrapped, the same seed gives another episode than bare"
        found.append(Finding(PROBLEM, text, "please report it, with the environment", "pz_policymap"))
    return found or [
        Finding(OK, "episodes are the same wrapped and bare, and a seed replays them in a used environment")
    ]


def _trace(env: Any, api: str, info_key: str, steps: int) -> list[Any]:
    """Returns everything that an episode with a fixed seed shows, except the tags."""
    trace = []
    for agents, observations, infos, rewards, _ in random_episode(env, api, 7, steps):
        bare = {
            str(agent): {key: value for key, value in (infos.get(agent) or {}).items() if key != info_key}
            for agent in dict.fromkeys([*infos, *observations, *agents])  # wrapped, a missing info is an empty one
        }
        seen = {str(agent): observation for agent, observation in observations.items()}
        paid = {str(agent): reward for agent, reward in rewards.items()}
        trace.append(
            copy.deepcopy(([str(agent) for agent in agents], seen, bare, paid))
        )  # environments may write into them later
    return trace
