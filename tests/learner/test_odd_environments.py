"""`LearnerEnv` around environments with habits that differ from PettingZoo's."""

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env
from pettingzoo.classic import connect_four_v3
from pettingzoo.utils import parallel_to_aec
from pettingzoo.utils.env import AECEnv

import pz_policymap as pm
from tests.learner_envs import ScriptedAEC
from tests.stub_envs import StubParallel

FIRST = pm.Fixed({"a": 0, "b": 1})


def zero(observation, agent, info):
    return 0


def learner_env(env, record=None, mapping=FIRST, **settings):
    tagged = pm.wrap(env, mapping, seed=0)
    return pm.LearnerEnv(tagged if record is None else pm.record_results(tagged, record), {1: zero}, **settings)


def rewards_until_the_end(env):
    env.reset()
    rewards, over = [], False
    while not over:
        _, reward, terminated, truncated, _ = env.step(0)
        rewards.append(reward)
        over = terminated or truncated
    return rewards


class Board(StubParallel):
    """Every observation, mask and info is one array, written in place; agent "a" is truncated before "b"."""

    def __init__(self):
        super().__init__(live=[("a", "b"), ("a", "b"), ("b",), ("b",), ()])
        self.board, self.mask = np.zeros(1, np.float32), np.ones(2, np.int8)

    def observation_space(self, agent):
        return spaces.Box(0, 100, (1,), np.float32)

    def _infos(self, agents):
        self.board[0], self.mask[1] = self.time, self.time < 3
        return {agent: {"clock": self.board, "action_mask": self.mask} for agent in agents}

    def reset(self, seed=None, options=None):
        observations, infos = super().reset(seed, options)
        return dict.fromkeys(observations, self.board), infos

    def step(self, actions):
        observations, rewards, over, never, infos = super().step(actions)
        return dict.fromkeys(observations, self.board), rewards, never, over, infos


@pytest.mark.parametrize("play_out", [True, False])
@pytest.mark.parametrize("make", [Board, lambda: parallel_to_aec(Board())], ids=["parallel", "aec"])
def test_last_observation_written_in_place_stays_that_of_the_learners_end(make, play_out):
    env = learner_env(make(), play_out=play_out)
    env.reset()
    env.step(0)
    observation, _, terminated, truncated, info = env.step(0)
    assert (observation.tolist(), info["clock"].tolist()) == ([2.0], [2.0])
    assert env.action_masks().tolist() == [True, True]
    assert (terminated, truncated) == (False, True)


class PaysTwice(AECEnv):
    """The second agent wins by its move; dead steps accumulate the final rewards again, as in Shimmy's OpenSpiel."""

    metadata = {"name": "pays_twice_v0"}  # noqa: RUF012
    render_mode = None

    def __init__(self):
        super().__init__()
        self.possible_agents = ["a", "b"]

    def observation_space(self, agent):
        return spaces.Discrete(3)

    def action_space(self, agent):
        return spaces.Discrete(2)

    def observe(self, agent):
        return self.moves

    def reset(self, seed=None, options=None):
        self.agents, self.moves, self.agent_selection = ["a", "b"], 0, "a"
        self.rewards, self._cumulative_rewards = dict.fromkeys("ab", 0.0), dict.fromkeys("ab", 0.0)
        self.terminations, self.truncations = dict.fromkeys("ab", False), dict.fromkeys("ab", False)
        self.infos = {"a": {}, "b": {}}

    def step(self, action):
        agent = self.agent_selection
        if self.terminations[agent]:
            for table in (self.rewards, self._cumulative_rewards, self.terminations, self.truncations, self.infos):
                del table[agent]
            self.agents.remove(agent)
            self.agent_selection = next(iter(self.agents), None)
        else:
            self._cumulative_rewards[agent] = 0.0
            self.moves += 1
            if self.moves == 2:
                self.rewards, self.terminations = {"a": -1.0, "b": 1.0}, dict.fromkeys("ab", True)
            self.agent_selection = "b" if self.moves == 1 else "a"
        self._accumulate_rewards()


@pytest.mark.parametrize("agent", ["a", "b"])
def test_rewards_accumulated_twice_count_once_in_every_seat(agent):
    episodes = []
    env = learner_env(PaysTwice(), episodes.append, pm.Fixed({"a": int(agent != "a"), "b": int(agent != "b")}))
    assert rewards_until_the_end(env) == [-1.0 if agent == "a" else 1.0]
    assert episodes[0].returns == (-1.0, 1.0)


@pytest.mark.parametrize("where", [(), (0,), (1,), (2,), (3,), (4,), (2, 3)])
def test_keys_that_are_not_agents_and_missing_truncations_are_ignored(where):
    class Habits(StubParallel):
        def step(self, actions):
            outcome = super().step(actions)
            for place in where:
                outcome[place]["__all__"] = {} if place == 4 else False
            return outcome if where else (*outcome[:3], {}, outcome[4])

    episodes = []
    assert rewards_until_the_end(learner_env(Habits(), episodes.append)) == [1.0, 1.0]
    assert episodes[0].agents == ("a", "b")


@pytest.mark.parametrize(
    ("reward", "number"), [(np.array([0.5]), 0.5), (np.float32(0.5), 0.5), (np.array(2), 2.0), (None, 0.0), (3, 3.0)]
)
@pytest.mark.parametrize("api", ["parallel", "aec"])
def test_rewards_of_other_types_are_numbers(api, reward, number):
    class Pays(StubParallel):
        def step(self, actions):
            observations, rewards, *rest = super().step(actions)
            return observations, dict.fromkeys(rewards, reward), *rest

    env = Pays() if api == "parallel" else ScriptedAEC([[("a", {"a": reward}, ()), ("a", {"a": reward}, ("a", "b"))]])
    if api == "aec":
        env._accumulate_rewards = lambda: None
    rewards = rewards_until_the_end(learner_env(env))
    assert rewards == [number, number]
    assert all(type(reward) is float for reward in rewards)


@pytest.mark.parametrize("api", ["parallel", "aec"])
def test_vector_reward_raises_and_names_agent_and_reward(api):
    pair = np.array([1.0, 2.0])

    class Pays(StubParallel):
        def step(self, actions):
            observations, rewards, *rest = super().step(actions)
            return observations, {**rewards, "a": pair}, *rest

    env = Pays() if api == "parallel" else ScriptedAEC([[("a", {"a": pair}, ("a", "b"))]])
    if api == "aec":
        env._accumulate_rewards = lambda: None
    with pytest.raises(ValueError, match=r"one number per agent, got array\(\[1., 2.\]\) for agent 'a'"):
        rewards_until_the_end(learner_env(env))


def test_opponent_without_an_observation_is_not_asked():
    class Traffic(StubParallel):
        """Shows agent "b" nothing at even times, when it is not due to act."""

        acted = ()

        def _shown(self, observations):
            return {agent: seen for agent, seen in observations.items() if agent != "b" or self.time % 2}

        def reset(self, seed=None, options=None):
            observations, infos = super().reset(seed, options)
            return self._shown(observations), infos

        def step(self, actions):
            self.acted += (tuple(actions),)
            observations, *rest = super().step(actions)
            return self._shown(observations), *rest

    inner = Traffic(live=[("a", "b")] * 3 + [()])
    assert rewards_until_the_end(learner_env(inner)) == [1.0] * 3
    assert inner.acted == (("a",), ("a", "b"), ("a",))


@pytest.mark.parametrize("truncates", [True, False])
def test_agents_emptied_with_the_last_step_end_as_their_flags_say(truncates):
    class Empties(ScriptedAEC):
        def step(self, action):
            super().step(action)
            if self.terminations["a"] or self.truncations["a"]:
                self.agents = []

    env = learner_env(Empties([[("a", {"a": 1.0}, ()), ("a", {"a": 2.0}, ("a", "b"))]], truncates=truncates))
    env.reset()
    env.step(0)
    _, reward, *ended, _ = env.step(0)
    assert (reward, ended) == (2.0, [not truncates, truncates])


def test_agents_emptied_without_flags_have_terminated():
    class Vanishes(ScriptedAEC):
        def step(self, action):
            super().step(action)
            self.agents = []

    env = learner_env(Vanishes([[("a", {"a": 1.0}, ())] * 2]))
    env.reset()
    assert env.step(0)[1:4] == (1.0, True, False)


def test_aec_learner_that_respawns_ends_its_episode():
    class Revives(ScriptedAEC):
        def step(self, action):
            was_dead = self.terminations[self.agent_selection]
            super().step(action)
            if was_dead and "a" not in self.agents and self.time == 1:
                self.agents.append("a")
                for table in (self.terminations, self.truncations, self.rewards, self._cumulative_rewards):
                    table["a"] = 0
                self.infos["a"] = {}
                self.agent_selection = "a"

    inner = Revives([[("a", {"a": 1.0}, ("a",)), ("b", {"a": 5.0}, ("b",))]])
    assert rewards_until_the_end(learner_env(inner)) == [1.0]
    assert inner.time == 1


class KnowsLater(StubParallel):
    """Knows its spaces, or its agents, only after a reset."""

    def __init__(self, unknown):
        self.unknown = unknown
        super().__init__(possible_agents=None if unknown == "agents" else ("a", "b"))

    def reset(self, seed=None, options=None):
        self.unknown, self.possible_agents = None, ["a", "b"]
        return super().reset(seed, options)

    def observation_space(self, agent):
        if self.unknown == "spaces":
            raise KeyError(agent)
        return None if self.unknown == "returns None" else super().observation_space(agent)


@pytest.mark.parametrize(
    ("unknown", "message"),
    [
        ("spaces", "env must define the spaces of agent 'a', got KeyError: 'a'; reset it before"),
        ("returns None", "env must define the spaces of agent 'a', got None; reset it before"),
        ("agents", "env must have possible_agents.*; reset it before wrapping"),
    ],
)
def test_spaces_and_agents_known_after_a_reset_are_accepted_after_a_reset(unknown, message):
    with pytest.raises(ValueError, match=message):
        learner_env(KnowsLater(unknown))
    env = KnowsLater(unknown)
    env.reset()
    assert rewards_until_the_end(learner_env(env)) == [1.0, 1.0]


def draws(observation, agent, info, rng):
    return int(rng.choice(np.flatnonzero(observation["action_mask"])))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("isolate_randomness", [False, True])
@pytest.mark.parametrize("opponent", [draws, "random"])
def test_gymnasiums_check_passes_for_opponents_that_draw_from_rng(opponent, isolate_randomness):
    tagged = pm.wrap(connect_four_v3.env(), pm.Focal(pm.Fixed(0), pm.Fixed(1)))
    check_env(pm.LearnerEnv(tagged, {1: opponent}, isolate_randomness=isolate_randomness), skip_render_check=True)


def drawn_observations(env, seed):
    """Returns what the learner observes from a seed if it chooses the first legal action."""
    observation, _ = env.reset(seed=seed, options={"policy_ids": {"player_0": 0, "player_1": 1}})
    seen, over = [observation.tolist()], False
    while not over:
        observation, _, over, _, _ = env.step(int(env.action_masks().argmax()))
        seen.append(observation.tolist())
    return seen


@pytest.mark.parametrize("isolate_randomness", [False, True])
def test_seed_determines_opponents_that_draw_from_rng_whatever_global_generators_do(isolate_randomness):
    tagged = pm.wrap(connect_four_v3.env(), pm.Focal(pm.Fixed(0), pm.Fixed(1)))
    env = pm.LearnerEnv(tagged, {1: draws}, isolate_randomness=isolate_randomness)
    np.random.seed(1)  # noqa: NPY002
    first = drawn_observations(env, 5)
    np.random.seed(2)  # noqa: NPY002
    assert drawn_observations(env, 5) == first
    assert drawn_observations(env, 6) != first


class Lists(StubParallel):
    """Agent "a" ends at step 2; both stay in `agents` until "b" ends at step 4. Dead agents must not act."""

    def __init__(self, respawn_at=9):
        super().__init__(live=[("a", "b")] * 4 + [()])
        self.respawn_at = respawn_at

    def step(self, actions):
        assert set(actions) == ({"a", "b"} if self.time < 2 or self.time >= self.respawn_at else {"b"})
        super().step(actions)
        observations, rewards = dict.fromkeys("ab", self.time), dict.fromkeys("ab", 1.0)
        over = {"a": 2 <= self.time < self.respawn_at or self.time == 4, "b": self.time == 4}
        return observations, rewards, over, dict.fromkeys("ab", False), self._infos("ab")


@pytest.mark.parametrize("learner", ["a", "b"])
def test_dead_agents_that_stay_listed_are_played_out_in_every_seat(learner):
    episodes = []
    env = learner_env(Lists(), episodes.append, pm.Fixed({agent: int(agent != learner) for agent in "ab"}))
    for _ in range(2):
        assert sum(rewards_until_the_end(env)) == 4.0
    assert [(episode.returns, episode.lengths) for episode in episodes] == [((4.0, 4.0), (2, 4))] * 2


def test_listed_opponent_that_respawns_acts_again():
    episodes = []
    env = learner_env(Lists(respawn_at=3), episodes.append, pm.Fixed({"a": 1, "b": 0}))
    assert sum(rewards_until_the_end(env)) == 4.0
    assert episodes[0].returns == (4.0, 4.0)
