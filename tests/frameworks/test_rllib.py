"""The adapter for RLlib on a real local Ray cluster; it runs in an environment of its own: `nox -s rllib`.

What an episode must play is taken from `wrap` around the bare environment, reset once an episode: the reference knows
nothing of runners, fragments or restarts. Episodes are numbered by the recorder, in the order in which they begin.
"""

from __future__ import annotations

import json
import os
import time
from collections import defaultdict
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import ray
from gymnasium.spaces import Box, Discrete
from pettingzoo.classic import tictactoe_v3
from pettingzoo.utils.env import ParallelEnv
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.env.wrappers.pettingzoo_env import ParallelPettingZooEnv, PettingZooEnv
from ray.tune.registry import register_env

import pz_policymap as pm
from pz_policymap.adapters.rllib import AECSeats, ParallelSeats, configure

SEED = 7
EVERY = 2
AGENTS = ["zoe", "adam", "mia", "bob"]  # in no order that a set or a sort would give


class Meeting(ParallelEnv[str, Any, Any]):
    """Agents with tiny observations; episodes last 3 to 7 steps, `mia` may come late."""

    metadata: ClassVar[dict[str, Any]] = {"name": "meeting_v0"}
    render_mode = None

    def __init__(self, late: bool = False, mixed_end: bool = False) -> None:
        self.possible_agents = list(AGENTS)
        self.late, self.mixed_end, self.episodes = late, mixed_end, 0

    def observation_space(self, agent: str) -> Box:
        return Box(-1.0, 1.0, (2,), np.float32)

    def action_space(self, agent: str) -> Discrete:
        return Discrete(2)

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self.time, self.length = 0, 3 + self.episodes % 5
        self.episodes += 1
        self.agents = [agent for agent in AGENTS if not (self.late and agent == "mia")]
        return self._observe(), {agent: {} for agent in self.agents}

    def step(self, actions: dict[str, Any]) -> Any:
        assert set(actions) == set(self.agents)
        self.time += 1
        if self.late and self.time == 2:
            self.agents = list(AGENTS)
        observations, back = self._observe(), list(self.agents)
        over = self.time >= self.length
        truncated = {agent: over and self.mixed_end and agent == "bob" for agent in back}
        terminated = {agent: over and not truncated[agent] for agent in back}
        if over:
            self.agents = []
        return observations, dict.fromkeys(back, 1.0), terminated, truncated, {agent: {} for agent in back}

    def _observe(self) -> dict[str, Any]:
        return {agent: np.full(2, self.time / 10, np.float32) for agent in self.agents}


class NumberedTurns(tictactoe_v3.raw_env):
    """Tic-tac-toe with a flat observation and any move allowed: an occupied square ends the game."""

    def __init__(self) -> None:
        super().__init__(screen_height=100)

    def observation_space(self, agent: str) -> Box:
        return Box(0.0, 1.0, (2,), np.float32)

    def observe(self, agent: str) -> Any:
        return np.zeros(2, np.float32)

    def step(self, action: Any) -> None:
        over = self.terminations[self.agent_selection]
        if not over and self.board.squares[action]:
            action = int(np.argmin(np.abs(np.array(self.board.squares))))
        super().step(action)


ENVS = {
    "parallel": (ParallelPettingZooEnv, Meeting),
    "aec": (PettingZooEnv, NumberedTurns),
    "late": (ParallelSeats, partial(Meeting, late=True)),
    "mixed_end": (ParallelSeats, partial(Meeting, mixed_end=True)),
    "turns": (AECSeats, NumberedTurns),
}


@pytest.fixture(scope="module", autouse=True)
def cluster():
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, configure_logging=False)
    for name, (wrapper, make) in ENVS.items():
        register_env(name, lambda _, wrapper=wrapper, make=make: wrapper(make()))
    yield
    ray.shutdown()


class Recorder:
    """Writes down every episode that begins and ends, a file a process."""

    def __init__(self, folder: Path, event: str) -> None:
        self.folder, self.event = folder, event

    def __call__(self, *, episode: Any, env_runner: Any, env_index: int, **_: Any) -> None:
        config = env_runner.config
        agents = sorted(episode.agent_ids) if self.event == "end" else AGENTS
        seats = episode.agent_to_module_mapping_fn.modules
        line = {
            "time": time.time_ns(),
            "event": self.event,
            "group": "evaluation" if config.in_evaluation else "training",
            "env": (env_runner.worker_index or 1) * config.num_envs_per_env_runner + env_index,
            "id": episode.id_,
            "modules": {agent: episode.module_for(agent) for agent in agents if agent in seats},
            "seats": seats,
        }
        with (self.folder / str(os.getpid())).open("a") as file:
            file.write(json.dumps(line) + "\n")


class Run:
    """A small algorithm with a recorder."""

    def __init__(
        self, folder: Path, env: str = "parallel", mapping: Any = 3, runners: int = 2, **settings: Any
    ) -> None:
        self.folder = folder
        self.envs = settings.pop("envs", 3)
        evaluation = settings.pop("evaluation", {})
        config = (
            PPOConfig()
            .environment(env, disable_env_checking=True)
            .env_runners(num_env_runners=runners, num_envs_per_env_runner=self.envs, rollout_fragment_length=4)
            .training(train_batch_size_per_learner=24, minibatch_size=24, num_epochs=1)
            .rl_module(model_config={"fcnet_hiddens": [4]})
            .callbacks(on_episode_start=Recorder(folder, "start"), on_episode_end=Recorder(folder, "end"))
            .fault_tolerance(restart_failed_env_runners=True)
            .evaluation(**evaluation)
        )
        settings = {"seed": SEED, "resample_every": EVERY, **settings}
        self.config = configure(config, mapping, **settings)

    def build(self) -> Any:
        return self.config.build_algo()


def episodes(folder: Path, group: str = "training", event: str = "start") -> dict[int, list[dict[str, str]]]:
    """The modules of every episode, by environment, counted from 0 over all runners, in the order of their begin."""
    played = defaultdict(list)
    lines = [json.loads(line) for path in folder.iterdir() for line in path.read_text().splitlines()]
    for line in sorted(lines, key=itemgetter("time")):
        if (line["group"], line["event"]) == (group, event):
            played[line["env"]].append(line["seats"] if event == "start" else line["modules"])
    first = min(played) if played else 0
    return {env - first: those for env, those in played.items()}


def alone(make: Any, env_index: int, count: int, mapping: Any = 3) -> list[dict[str, str]]:
    """What `wrap` assigns in the first episodes of this environment."""
    env = pm.wrap(make(), mapping, seed=SEED, env_index=env_index, resample_every=EVERY)
    assigned = []
    for _ in range(count):
        env.reset()
        assigned.append({agent: f"policy_{policy}" for agent, policy in env.policy_ids.items()})
    return assigned


@pytest.mark.parametrize("name", ["parallel", "aec"])
@pytest.mark.parametrize("runners", [2, 0])
def test_every_episode_plays_what_wrap_assigns_alone(tmp_path, name, runners):
    algorithm = Run(tmp_path, name, runners=runners).build()
    for _ in range(8 if name == "aec" else 4):
        algorithm.train()
    algorithm.stop()
    begun, ended = episodes(tmp_path), episodes(tmp_path, event="end")
    assert sorted(begun) == list(range(3 * max(runners, 1)))
    for env, those in begun.items():
        assert len(those) > 2
        assert those == alone(ENVS[name][1], env, len(those))
        for whole, at_end in zip(those, ended[env], strict=False):
            assert at_end.items() <= whole.items()
