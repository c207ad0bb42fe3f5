"""The adapter for RLlib on a real local Ray cluster; it runs in an environment of its own: `nox -s rllib`.

The expected assignments come from `wrap` around the bare environment, reset once per episode, without runners,
fragments or restarts. The recorder numbers episodes in the order in which they begin.
"""

from __future__ import annotations

import json
import os
import pickle
import re
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
import ray
from gymnasium.spaces import Box, Discrete
from mpe2 import simple_tag_v3
from pettingzoo.classic import tictactoe_v3
from pettingzoo.utils import parallel_to_aec
from pettingzoo.utils.env import ParallelEnv
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.rllib.env.multi_agent_env_runner import MultiAgentEnvRunner
from ray.rllib.env.multi_agent_episode import MultiAgentEpisode
from ray.rllib.env.wrappers.pettingzoo_env import ParallelPettingZooEnv, PettingZooEnv
from ray.rllib.utils.replay_buffers.multi_agent_episode_buffer import MultiAgentEpisodeReplayBuffer
from ray.tune.registry import register_env

import pz_policymap as pm
from pz_policymap.adapters.rllib import AECSeats, Assignment, ModuleMapping, ParallelSeats, configure, set_mapping
from pz_policymap.adapters.rllib.callback import AssignPolicies
from pz_policymap.adapters.rllib.counters import EpisodeCounters
from pz_policymap.adapters.rllib.environments import seats
from pz_policymap.adapters.rllib.module_mapping import Count

SEED = 7
EVERY = 2
AGENTS = ["zoe", "adam", "mia", "bob"]  # neither sorted nor in the order of a set


class Meeting(ParallelEnv[str, Any, Any]):
    """Agents with tiny observations; episodes last 5 to 9 steps, `mia` may come late."""

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
        self.time, self.length = 0, 5 + self.episodes % 5
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
    "late_turns": (AECSeats, lambda: parallel_to_aec(Meeting(late=True))),
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
    """Records every episode that begins or ends, one file per process."""

    def __init__(self, folder: Path, event: str) -> None:
        self.folder, self.event = folder, event

    def __call__(self, *, episode: Any, env_runner: Any, env_index: int, **kwargs: Any) -> None:
        config = env_runner.config
        chunks = [*kwargs.get("prev_episode_chunks", []), episode]
        agents = sorted(episode.agent_to_module_mapping_fn.modules)
        line = {
            "time": time.time_ns(),
            "pid": os.getpid(),
            "event": self.event,
            "group": "evaluation" if config.in_evaluation else "training",
            "env": max(env_runner.worker_index - 1, 0) * config.num_envs_per_env_runner + env_index,
            "modules": {agent: episode.module_for(agent) for agent in agents},
            "acted": [[one.agent_id, one.module_id] for chunk in chunks for one in chunk.agent_episodes.values()],
        }
        with (self.folder / str(os.getpid())).open("a") as file:
            file.write(json.dumps(line) + "\n")


def make_config(folder: Path, env: str = "parallel", runners: int = 2, envs: int = 3) -> PPOConfig:
    """A small algorithm with a recorder; fragments of 4 steps are shorter than most episodes."""
    return (
        PPOConfig()
        .environment(env, disable_env_checking=True)
        .env_runners(num_env_runners=runners, num_envs_per_env_runner=envs, rollout_fragment_length=4)
        .training(train_batch_size_per_learner=4 * envs * max(runners, 1), minibatch_size=4, num_epochs=1)
        .rl_module(model_config={"fcnet_hiddens": [4]})
        .fault_tolerance(delay_between_env_runner_restarts_s=0.0)
        .callbacks(on_episode_start=Recorder(folder, "start"), on_episode_end=Recorder(folder, "end"))
    )


def lines(folder: Path, group: str = "training") -> list[dict[str, Any]]:
    """All records, in the order of time."""
    text = [line for path in folder.iterdir() for line in path.read_text().splitlines()]
    return sorted((line for line in map(json.loads, text) if line["group"] == group), key=itemgetter("time"))


def by_env(recorded: list[dict[str, Any]], event: str) -> dict[int, list[dict[str, str]]]:
    """The modules of every episode that began or ended, by environment, counted from 0 over all runners."""
    played = defaultdict(list)
    for line in recorded:
        if line["event"] == event:
            played[line["env"]].append(line["modules"])
    return played


def alone(make: Any, env_index: int, count: int, mapping: Any = 3) -> list[dict[str, str]]:
    """What `wrap` assigns in the first episodes of this environment."""
    env = pm.wrap(make(), mapping, seed=SEED, env_index=env_index, resample_every=EVERY)
    assigned = []
    for _ in range(count):
        env.reset()
        assigned.append({agent: f"policy_{policy}" for agent, policy in env.policy_ids.items()})
    return assigned


def run(config: PPOConfig, mapping: Any = 3, iterations: int = 5, **settings: Any) -> Any:
    """Builds an algorithm, trains it a little and stops it."""
    algorithm = configure(config, mapping, **{"seed": SEED, "resample_every": EVERY, **settings}).build_algo()
    for _ in range(iterations):
        algorithm.train()
    algorithm.stop()
    return algorithm


ITERATIONS = {"aec": 8, "turns": 8, "late_turns": 20}  # one step is one turn of an agent


@pytest.mark.parametrize(
    ("name", "runners"),
    [("aec", 2), ("aec", 0), ("parallel", 0), ("turns", 0), ("late", 0), ("late_turns", 0), ("mixed_end", 0)],
)
def test_assignments_equal_those_of_wrap(tmp_path, name, runners):
    run(make_config(tmp_path, name, runners), iterations=ITERATIONS.get(name, 5))
    recorded = lines(tmp_path)
    begun = by_env(recorded, "start")
    assert sorted(begun) == list(range(3 * max(runners, 1)))
    for env, played in begun.items():
        assert len(played) > EVERY
        assert played == alone(ENVS[name][1], env, len(played))
    ended = [line for line in recorded if line["event"] == "end"]
    assert all(line["modules"][agent] == module for line in ended for agent, module in line["acted"])
    assert {agent for line in ended for agent, _ in line["acted"]} == set(ended[0]["modules"])  # late agents, too
    assert max(len(line["acted"]) for line in ended) > len(ended[0]["modules"])  # episodes were cut


ADDED = "after add_module"


class Life:
    """An algorithm with killed runners, an added module and a checkpoint, and the records of each phase."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "recorded"
        self.folder.mkdir()
        self.phases: dict[str, dict[str, list[dict[str, Any]]]] = {}
        config = make_config(self.folder)
        config.evaluation(evaluation_interval=1, evaluation_num_env_runners=1, evaluation_duration=2)
        self.algorithm = configure(config, 3, seed=SEED, resample_every=EVERY).build_algo()
        self.train("begin")
        self.kill(self.algorithm.env_runner_group, 1, unnoticed=False)
        self.kill(self.algorithm.eval_env_runner_group, 1, unnoticed=False)
        self.train("killed")
        self.kill(self.algorithm.env_runner_group, 1, unnoticed=True)
        self.train("killed unnoticed")
        module = self.algorithm.get_module("policy_0")
        follow = self.algorithm.config.policy_mapping_fn.follow(4)
        spec = RLModuleSpec.from_module(module)
        self.algorithm.add_module("policy_3", spec, new_agent_to_module_mapping_fn=follow)
        self.kill(self.algorithm.env_runner_group, 2, unnoticed=False)
        self.kill(self.algorithm.eval_env_runner_group, 1, unnoticed=False)
        self.train(ADDED)
        checkpoint = self.algorithm.save_to_path(str(folder / "checkpoint"))
        self.algorithm.stop()
        self.algorithm = Algorithm.from_checkpoint(checkpoint)
        self.train("from checkpoint")
        self.algorithm.stop()

    def train(self, phase: str) -> None:
        """Trains until every environment, evaluation included, has begun a block."""
        for _ in range(40):
            self.algorithm.train()
            begun = [by_env(self.since(group), "start") for group in ("training", "evaluation")]
            if [len(those) for those in begun] == [6, 3] and min(map(len, begun[0].values())) > EVERY:
                break
        self.phases[phase] = {group: self.since(group) for group in ("training", "evaluation")}

    def since(self, group: str) -> list[dict[str, Any]]:
        """Returns the records since the last phase."""
        return lines(self.folder, group)[sum(len(groups[group]) for groups in self.phases.values()) :]

    def played(self, group: str) -> Iterator[tuple[str, int, int, dict[str, str]]]:
        """Yields the phase, environment, number and modules of every episode that began.

        An episode that the end of a process cut is played again by the next one; all others have a number of their own.
        """
        episode, over, pid = Counter(), defaultdict(lambda: True), {}
        for phase, groups in self.phases.items():
            for line in groups[group]:
                env = line["env"]
                if line["event"] == "start":
                    again = not over[env] and pid[env] != line["pid"]
                    episode[env] += not again
                    pid[env] = line["pid"]
                    yield phase, env, episode[env] - 1, line["modules"]
                over[env] = line["event"] == "end"

    @staticmethod
    def kill(group: Any, index: int, unnoticed: bool) -> None:
        """Kills a runner; RLlib may not notice if it is back before the next call."""
        actor = group._worker_manager.actors()[index]
        ray.kill(actor, no_restart=False)
        while unnoticed:
            with suppress(ray.exceptions.RayError):
                unnoticed = ray.get(actor.ping.remote()) != "pong"


@pytest.fixture(scope="module")
def life(tmp_path_factory):
    return Life(tmp_path_factory.mktemp("life"))


@pytest.mark.parametrize("group", ["training", "evaluation"])
def test_restarts_and_checkpoints_keep_numbers_and_assignments(life, group):
    old = [alone(Meeting, env, 200) for env in range(6)]
    new = [alone(Meeting, env, 200, 4) for env in range(6)]
    followed, drawn = defaultdict(dict), defaultdict(set)
    for phase, env, episode, modules in life.played(group):
        block = episode // EVERY
        if block not in followed[env]:
            # What was created when the mapping changed, but had not begun, keeps the old one.
            pending = phase == ADDED and not drawn[env, phase] and modules == old[env][episode]
            followed[env][block] = old if pending or phase not in (ADDED, "from checkpoint") else new
        drawn[env, phase].add(block)
        assert modules == followed[env][block][env][episode], (phase, env, episode)
    assert len(followed) == (6 if group == "training" else 3)
    assert all(rules[max(rules)] is new for rules in followed.values())
    assert all(drawn[env, phase] for env in followed for phase in life.phases)


def test_runners_were_killed(life):
    pids = {phase: {line["pid"] for line in groups["training"]} for phase, groups in life.phases.items()}
    assert [len(pids[phase]) for phase in pids] == [2] * 5
    assert [len(pids[a] & pids[b]) for a, b in pairwise(pids)] == [1, 1, 1, 0]


def test_runner_without_numbers_raises(tmp_path):
    config = configure(make_config(tmp_path, runners=1, envs=1), 3, seed=SEED)
    runner = ray.remote(MultiAgentEnvRunner).remote(config=config, worker_index=1)
    numbers = {"version": 1, "restores": 0, "environments": {"training/0": (4, 4, (0, 0, 0, 0), 0, True)}}
    # A broadcast that reaches a restarted runner first brings numbers, but not the current mapping.
    ray.get(runner.set_state.remote({"env_to_module_connector": {"EpisodeCounters": numbers}}))
    with pytest.raises(RuntimeError, match="env runner 1 was restarted and has no episode numbers yet"):
        ray.get(runner.sample.remote(num_episodes=1))
    ray.kill(runner)


def test_discarded_episodes_are_not_counted(tmp_path):
    algorithm = configure(make_config(tmp_path, runners=0), 3, seed=SEED, resample_every=EVERY).build_algo()
    for _ in range(4):
        algorithm.env_runner.sample(num_episodes=1)  # creates an episode after the last, and all again at the next call
    algorithm.env_runner.sample(num_timesteps=30)
    algorithm.stop()
    for env, played in by_env(lines(tmp_path), "start").items():
        assert len(played) > 5
        assert played == alone(Meeting, env, len(played))


def test_checkpoint_of_local_runner_repeats_unfinished_episodes(tmp_path):
    (tmp_path / "recorded").mkdir()
    algorithm = run(make_config(tmp_path / "recorded", runners=0), iterations=3)
    recorded = lines(tmp_path / "recorded")
    checkpoint = algorithm.save_to_path(str(tmp_path / "checkpoint"))
    again = Algorithm.from_checkpoint(checkpoint)
    for _ in range(3):
        again.train()
    again.stop()
    after = by_env(lines(tmp_path / "recorded")[len(recorded) :], "start")
    for env, ended in by_env(recorded, "end").items():
        assert after[env] == alone(Meeting, env, len(ended) + len(after[env]))[len(ended) :]


@pytest.mark.parametrize("runners", [0, 1])
def test_restore_in_a_running_algorithm_resumes_from_saved_numbers(tmp_path, runners):
    (tmp_path / "recorded").mkdir()
    config = make_config(tmp_path / "recorded", runners=runners)
    config.evaluation(evaluation_interval=1, evaluation_duration=2)
    algorithm = configure(config, 3, seed=SEED, resample_every=EVERY).build_algo()

    def train(iterations: int) -> dict[str, list[dict[str, Any]]]:
        before = {group: len(lines(tmp_path / "recorded", group)) for group in ("training", "evaluation")}
        for _ in range(iterations):
            algorithm.train()
        return {group: lines(tmp_path / "recorded", group)[start:] for group, start in before.items()}

    saved = train(4)
    checkpoint = algorithm.save_to_path(str(tmp_path / "checkpoint"))
    train(6)
    algorithm.restore_from_path(checkpoint)
    after = train(6)
    algorithm.stop()
    for group, recorded in saved.items():
        begun, over = by_env(recorded, "start"), {line["env"]: line["event"] == "end" for line in recorded}
        assert sorted(begun) == [0, 1, 2]
        for env, episodes in begun.items():
            played = by_env(after[group], "start")[env]
            first = len(episodes) if over[env] else len(episodes) - 1
            due = alone(Meeting, env, first + len(played))[first:]
            # What was created before, but had not begun, is played under its old number.
            assert played == due or played[1:] == due[:-1], (group, env)
            assert len(played) > EVERY


def test_local_runner_beside_others_has_its_own_environments(tmp_path):
    config = make_config(tmp_path, runners=1, envs=2).env_runners(create_local_env_runner=True)
    config.env_runners(create_env_on_local_worker=True)
    algorithm = configure(config, 3, seed=SEED, resample_every=EVERY).build_algo()
    algorithm.env_runner.sample(num_timesteps=60)
    algorithm.stop()
    recorded = lines(tmp_path)
    assert {line["pid"] for line in recorded} == {os.getpid()}
    for env, played in by_env(recorded, "start").items():
        assert len(played) > EVERY
        assert played == alone(Meeting, 2 + env, len(played))  # the runner has environments 0 and 1


def test_rllib_wrapper_fails_when_an_agent_joins_mid_episode(tmp_path):
    register_env("late_without_seats", lambda _: ParallelPettingZooEnv(Meeting(late=True)))
    with pytest.raises(KeyError, match="mia"):
        run(make_config(tmp_path, "late_without_seats", runners=0))


def learner_or(policy: int, agents: list[str], draw: Any) -> dict[str, int]:
    """Policy 0 everywhere, and another one in mia's seat from the third block on."""
    return dict.fromkeys(agents, 0) | ({"mia": policy} if draw.block >= 2 else {})


def test_assignment_to_a_missing_module_raises(tmp_path):
    config = make_config(tmp_path, runners=1, envs=1).multi_agent(policies={"policy_0", "policy_1"})
    with pytest.raises(ValueError, match="module of agent 'mia' must be one of .*, got 'policy_7'"):
        run(config, partial(learner_or, 7), iterations=60)


def test_population_without_modules_raises_at_construction(tmp_path):
    config = make_config(tmp_path, runners=0).multi_agent(policies={"policy_0", "policy_1"})
    with pytest.raises(ValueError, match="module of policy 2 must be one of .*, got 'policy_2'"):
        run(config, 3, iterations=0)


def tag_config(folder: Path, explicit: bool) -> PPOConfig:
    """Simple tag, whose adversaries see more than the good agent."""
    env = simple_tag_v3.parallel_env(max_cycles=5)
    register_env("tag", lambda _: ParallelSeats(simple_tag_v3.parallel_env(max_cycles=5)))
    config = make_config(folder, "tag", runners=0, envs=2)
    sees = {"chaser_0": "adversary_0", "chaser_1": "adversary_0", "runner_0": "agent_0", "runner_1": "agent_0"}
    specs = {
        module: RLModuleSpec(
            observation_space=env.observation_space(agent) if explicit else None,
            action_space=env.action_space(agent) if explicit else None,
            model_config={"fcnet_hiddens": [4]},
        )
        for module, agent in sees.items()
    }
    return config.multi_agent(policies=set(sees)).rl_module(rl_module_spec=MultiRLModuleSpec(rl_module_specs=specs))


ROLES = pm.Roles({"adversary": pm.Uniform([0, 1]), "agent": pm.Uniform([2, 3])}, lambda agent: agent.split("_")[0])
TAG_NAMES = ["chaser_0", "chaser_1", "runner_0", "runner_1"]


def test_agents_with_different_spaces_work_with_roles(tmp_path):
    run(tag_config(tmp_path, explicit=True), ROLES, names=TAG_NAMES)
    make = partial(simple_tag_v3.parallel_env, max_cycles=5)
    begun = by_env(lines(tmp_path), "start")
    assert len({tuple(modules.values()) for played in begun.values() for modules in played}) > 2
    for env, played in begun.items():
        reference = alone(make, env, len(played), ROLES)
        assert played == [{a: TAG_NAMES[int(m[-1])] for a, m in modules.items()} for modules in reference]


def test_agents_with_different_spaces_need_module_specs(tmp_path):
    with pytest.raises(ValueError, match="different observation spaces"):
        run(tag_config(tmp_path, explicit=False), ROLES, names=TAG_NAMES, iterations=0)


def weights(algorithm: Any) -> dict[str, Any]:
    """A copy of what each module has learned."""
    state = algorithm.learner_group.get_state()["learner"]["rl_module"]
    return {module: {name: np.array(value) for name, value in those.items()} for module, those in state.items()}


def test_only_learners_change(tmp_path):
    config = configure(make_config(tmp_path, runners=0), 3, seed=SEED, learners=[1])
    assert config.policies_to_train == ["policy_1"]
    algorithm = config.build_algo()
    before = weights(algorithm)
    for _ in range(3):
        algorithm.train()
    after = weights(algorithm)
    algorithm.stop()
    same = {module: all((before[module][k] == after[module][k]).all() for k in before[module]) for module in before}
    assert same == {"policy_0": True, "policy_1": False, "policy_2": True}


@pytest.mark.parametrize("now", [False, True])
def test_set_mapping_takes_effect_at_the_next_draw_or_now(tmp_path, now):
    config = configure(make_config(tmp_path, runners=0, envs=1), pm.Fixed(0), seed=SEED, resample_every=4)
    config.multi_agent(policies={"policy_0", "policy_1"})
    algorithm = config.build_algo()
    algorithm.env_runner.sample(num_timesteps=5)
    with pytest.raises(ValueError, match="policy_2"):
        set_mapping(algorithm, 3)
    with pytest.raises(ValueError, match="zoe"):
        set_mapping(algorithm, pm.Fixed({"adam": 0, "mia": 0, "bob": 0}), now=True)
    with pytest.raises(TypeError, match="algorithm must be an Algorithm, got None"):
        set_mapping(None, 2)
    set_mapping(algorithm, pm.Fixed(1), now=now)
    algorithm.env_runner.sample(num_timesteps=60)
    algorithm.stop()
    played = [modules["zoe"][-1] for modules in by_env(lines(tmp_path), "start")[0]]
    assert "".join(played[:6]) == ("011111" if now else "000011")


def test_removed_module_is_not_assigned(tmp_path):
    config = configure(make_config(tmp_path, runners=0), 3, seed=SEED, resample_every=50)
    algorithm = config.build_algo()
    algorithm.train()
    before = len(lines(tmp_path))
    algorithm.remove_module(
        "policy_2", new_agent_to_module_mapping_fn=algorithm.config.policy_mapping_fn.follow(2, now=True)
    )
    for _ in range(3):
        algorithm.train()
    algorithm.stop()
    played = [set(line["modules"].values()) for line in lines(tmp_path)]
    assert "policy_2" in set.union(*played[:before])
    assert set.union(*played[before:]) == {"policy_0", "policy_1"}


def test_evaluation_can_use_another_mapping(tmp_path):
    config = make_config(tmp_path, runners=0)
    everybody_1 = ModuleMapping(pm.Fixed(1), seed=SEED)
    config.evaluation(
        evaluation_interval=1,
        evaluation_duration=2,
        evaluation_config=PPOConfig.overrides(policy_mapping_fn=everybody_1),
    )
    run(config)
    assert {module for line in lines(tmp_path, "evaluation") for module in line["modules"].values()} == {"policy_1"}
    for env, played in by_env(lines(tmp_path), "start").items():
        assert played == alone(Meeting, env, len(played))


class Counting(RLlibCallback):
    """A callback of a user."""

    created = 0

    def on_episode_created(self, *, episode: Any, **_: Any) -> None:
        assert isinstance(episode.agent_to_module_mapping_fn, Assignment)
        Counting.created += 1


class Seen(ConnectorV2):
    """A connector of a user, with a state."""

    batches = 0

    def __call__(self, *, batch: Any, **_: Any) -> Any:
        Seen.batches += 1
        return batch


def test_existing_callbacks_and_connectors_are_kept(tmp_path):
    config = make_config(tmp_path, runners=0).callbacks(Counting)
    config.env_runners(env_to_module_connector=lambda env, spaces, device: Seen())
    configure(config, 2, seed=0)
    run(config, 3, iterations=1)  # a second call replaces what the first has set
    assert Counting.created
    assert Seen.batches
    assert config.callbacks_class == [AssignPolicies, Counting]


@pytest.mark.parametrize(
    ("replace", "message"),
    [
        (lambda config: config.callbacks(RLlibCallback), r"call configure\(\) after config.callbacks"),
        (lambda config: config.multi_agent(policy_mapping_fn=lambda *_: "policy_0"), "policy_mapping_fn must be"),
        (
            lambda config: config.env_runners(env_to_module_connector=lambda *_: Seen()),
            "must begin with EpisodeCounters",
        ),
        (
            lambda config: config.env_runners(merge_env_runner_states=False),
            "merge_env_runner_states and broadcast_env_runner_states must be set",
        ),
    ],
)
def test_replaced_parts_raise(tmp_path, replace, message):
    config = configure(make_config(tmp_path, runners=0), 3, seed=SEED)
    replace(config)
    with pytest.raises((TypeError, ValueError), match=message):
        config.build_algo().train()


OLD_STACK = PPOConfig().api_stack(enable_rl_module_and_learner=False, enable_env_runner_and_connector_v2=False)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"config": "PPO"}, TypeError, "config must be an AlgorithmConfig, got 'PPO'"),
        ({"mapping": 0}, ValueError, "must be .*, got 0"),
        ({"seed": -1}, ValueError, "seed must be .*, got -1"),
        ({"resample_every": 0}, ValueError, "resample_every must be .*, got 0"),
        ({"names": "abc"}, TypeError, "names must be a sequence of strings, got 'abc'"),
        ({"names": ["a", "b"]}, ValueError, "names must be distinct and at least 3"),
        ({"names": ["a", "b", "a"]}, ValueError, "names must be distinct"),
        ({"learners": [0.5]}, TypeError, "learners must be .*, got 0.5"),
        ({"learners": 0}, TypeError, "learners must be a sequence of policies, got 0"),
        ({"learners": [0, 3]}, ValueError, "learners must have modules among .*, got 'policy_3'"),
        ({"names": ["a", "b", "c"], "learners": [3]}, ValueError, "names must have an entry for policy 3"),
        ({"config": OLD_STACK}, ValueError, "config must use the new API stack"),
        ({"mapping": pm.RoundRobin(3), "warmup_episodes": 2}, ValueError, "warmup_episodes must be 0"),
    ],
)
def test_invalid_arguments_raise_and_configure_nothing(arguments, error, message):
    config = arguments.get("config", PPOConfig())
    with pytest.raises(error, match=message):
        configure(**{"config": config, "mapping": 3, **arguments})
    assert config == "PPO" or not config.is_multi_agent


def test_mapping_with_too_few_environments_raises(tmp_path):
    with pytest.raises(ValueError, match="env_index must be below num_envs=2"):
        run(make_config(tmp_path, runners=0), pm.Balanced(2, num_envs=2), iterations=0)


def test_mapping_function_returns_a_module_for_any_agent():
    rule = ModuleMapping(3, names=["a", "b", "c"])
    assert {rule("zoe"), rule("nobody", None), rule(5, MultiAgentEpisode(), worker=None)} == {"a"}


def test_repeated_episode_keeps_its_assignment():
    rule = ModuleMapping(pm.Fixed(1), seed=SEED, resample_every=2)
    assert rule.begin(Count(3, 4, (0, 2)), 0, ("zoe", "bob")).count == Count(4, 4, (0, 2))
    assert rule.begin(Count(3, 2, (0, 2)), 0, ("zoe", "bob")).count == Count(4, 4, (1, 1))


def test_assignment_survives_pickle_cut_and_state():
    assignment = ModuleMapping(3, seed=SEED).begin(None, 0, tuple(AGENTS))
    episode = MultiAgentEpisode(agent_to_module_mapping_fn=pickle.loads(pickle.dumps(assignment)))
    episode.add_env_reset(observations={"zoe": 0, "bob": 0}, infos={})
    episode.add_env_step(
        observations={"zoe": 1, "mia": 1}, actions={"zoe": 0, "bob": 0}, rewards={"zoe": 0.0}, infos={}
    )
    for those in (episode, episode.cut(), MultiAgentEpisode.from_state(episode.get_state())):
        assert {agent: those.module_for(agent) for agent in AGENTS} == assignment.modules
    buffer = MultiAgentEpisodeReplayBuffer(capacity=10)
    buffer.add([episode])
    assert set(buffer.get_module_ids()) == {assignment.modules[agent] for agent in ("zoe", "bob", "mia")}
    with pytest.raises(KeyError, match="agent 'eve' has no seat"):
        episode.module_for("eve")


def counted(restores: int = 0, **counts: tuple[int, bool]) -> dict[str, Any]:
    """The state of counters."""
    environments = {name: (episode, 0, (0,), 0, over) for name, (episode, over) in counts.items()}
    return {"version": 1, "restores": restores, "environments": environments}


def test_merge_keeps_the_later_episode_of_each_environment():
    counters = EpisodeCounters()
    counters.set_state(counted(a=(3, True), b=(5, False)))
    counters.begin("c", Count(0, 0, (0,)))
    counters.end("c", Count(0, 0, (0,)))
    counters.begin("c", Count(1, 0, (0,)))
    first, second = counted(a=(4, False), b=(5, True)), counted(a=(2, True), b=(5, False), c=(0, True), d=(0, False))
    merged = counters.merge_states([first, second])
    assert merged == counted(a=(4, False), b=(5, True), c=(1, False), d=(0, False))
    counters.set_state(merged)
    assert [counters.last(name).episode for name in "abcd"] == [3, 5, 1, -1]  # what was cut is played again, but c


def test_restored_checkpoint_replaces_older_counts(tmp_path):
    counters, runner = EpisodeCounters(), EpisodeCounters()
    counters.set_state(counted(a=(1, True)))
    checkpoint = counters.save_to_path(str(tmp_path))
    runner.set_state(counted(a=(1, True)))
    for episode in (2, 3):
        runner.begin("a", Count(episode, 0, (0,)))
        runner.end("a", Count(episode, 0, (0,)))
    runner.begin("a", Count(4, 0, (0,)))
    old = runner.get_state()
    counters.learn([old])
    assert counters.last("a").episode == 3
    counters.restore_from_path(checkpoint)
    restored = counters.get_state()
    assert restored == counted(restores=1, a=(1, True))
    assert counters.merge_states([old]) == restored
    runner.set_state(restored)
    runner.set_state(old)  # a broadcast that comes late
    runner.end("a", Count(4, 0, (0,)))  # of the episode that was under way
    runner.begin("a", Count(5, 0, (0,)))  # of the one that had been created
    assert runner.get_state() == restored
    runner.begin("a", Count(2, 0, (0,)))
    assert runner.last("a").episode == 2
    counters.restore_from_path(checkpoint)
    assert counters.get_state() == counted(restores=2, a=(1, True))


def test_state_of_another_version_raises():
    with pytest.raises(ValueError, match="version of a state must be 1, got 2"):
        EpisodeCounters().set_state({**counted(), "version": 2})


class Inside(MultiAgentEnv):
    """An environment of RLlib's kind that keeps something else in `env`."""

    possible_agents: ClassVar[list[str]] = AGENTS
    env = SimpleNamespace(possible_agents=["nobody"])


def test_seats_are_possible_agents_in_order():
    turns = parallel_to_aec(Meeting())
    for env in (Inside(), ParallelPettingZooEnv(Meeting()), PettingZooEnv(turns), ParallelSeats(Meeting())):
        assert seats(env) == tuple(AGENTS)
    assert AECSeats(turns).possible_agents == AGENTS


@pytest.mark.parametrize("agents", [None, []])
def test_environment_without_possible_agents_raises(agents):
    env = Meeting()
    env.possible_agents = agents
    for make in (ParallelSeats, lambda env: seats(ParallelPettingZooEnv(env))):
        with pytest.raises(ValueError, match="possible_agents must be known before an episode begins"):
            make(env)


@pytest.mark.parametrize(("wrapper", "kind"), [(ParallelSeats, "ParallelEnv"), (AECSeats, "AECEnv")])
def test_environment_of_the_other_kind_raises(wrapper, kind):
    env = parallel_to_aec(Meeting()) if kind == "ParallelEnv" else Meeting()
    with pytest.raises(TypeError, match=f"env must be a PettingZoo {kind}, got"):
        wrapper(env)


def test_example_trains_three_modules_and_prints_meetings():
    example = Path(__file__).parents[2] / "examples" / "rllib_population.py"
    done = subprocess.run([sys.executable, str(example)], capture_output=True, text=True, check=True)
    iterations = re.findall(r"iteration (\d): mean returns {(.*)}", done.stdout)
    assert [number for number, _ in iterations] == ["0", "1", "2"]
    assert all(
        re.findall(r"'(\w+)': -\d", returns) == ["policy_0", "policy_1", "policy_2"] for _, returns in iterations
    )
    met = {(first, second): int(episodes) for first, second, episodes in re.findall(MET, done.stdout)}
    assert list(met) == [("0", "0"), ("0", "1"), ("0", "2"), ("1", "1"), ("1", "2"), ("2", "2")]
    assert all(met.values())


MET = r"policies (\d) and (\d) met in (\d+) episodes"
