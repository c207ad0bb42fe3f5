"""What is put on an episode: who plays whom in it, and how it is counted."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple


class Count(NamedTuple):
    """Where an environment stands, in plain types that travel and are saved.

    Attributes:
        episode: The episode that it plays or has played, from 0.
        draw_episode: The episode at which its assignment was drawn.
        policies: The policy of every seat.
        redraws: How many calls for a draw outside the cadence it has answered.
        over: Whether the episode has ended.
    """

    episode: int
    draw_episode: int
    policies: tuple[int, ...]
    redraws: int = 0
    over: bool = False


@dataclass(frozen=True)
class Assignment:
    """The modules of one episode, found on it as `episode.agent_to_module_mapping_fn`.

    RLlib hands it on when it cuts an episode, replays it or sends it to another process. For an episode of your own,
    to act by chosen modules, make one and hand it to `MultiAgentEpisode`.

    Args:
        modules: The module of every agent.
        policy_ids: The policy of every agent.
        env_index: The index of the environment over all runners.
        count: How the episode is counted.

    Example:
        >>> assignment = Assignment({"red": "policy_1", "blue": "policy_0"})
        >>> assignment("red", None)
        'policy_1'
    """

    modules: Mapping[Hashable, str]
    policy_ids: Mapping[Hashable, int] | None = None
    env_index: int | None = None
    count: Count | None = None

    def __call__(self, agent_id: Hashable, *_: Any, **__: Any) -> str:
        """Returns the module that acts for an agent; RLlib also hands in the episode.

        Raises:
            KeyError: If the agent has no seat.
        """
        try:
            return self.modules[agent_id]
        except KeyError:
            raise KeyError(f"agent {agent_id!r} has no seat: possible_agents are {list(self.modules)}") from None

    def check(self, existing: Collection[str]) -> None:
        """Raises a ValueError where an agent is assigned a module that is not there."""
        for agent, module in self.modules.items():
            if module not in existing:
                raise ValueError(
                    f"agent {agent!r} is assigned module {module!r}, which is not among {sorted(existing)}"
                )
