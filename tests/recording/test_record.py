"""`record_results`: ends of episodes, outcomes, stacks of wrappers, errors and vector environments."""

import copy
import pickle
from typing import ClassVar

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv
from gymnasium.wrappers.vector import ClipReward
from mpe2 import simple_adversary_v3, simple_spread_v3
from pettingzoo.classic import connect_four_v3, rps_v2, tictactoe_v3
from pettingzoo.classic.tictactoe.tictactoe import raw_env as raw_tictactoe
from pettingzoo.test import api_test, parallel_api_test
from pettingzoo.test.example_envs import generated_agents_env_v0, generated_agents_parallel_v0
from pettingzoo.utils import aec_to_parallel, parallel_to_aec, turn_based_aec_to_parallel
from pettingzoo.utils.env import ParallelEnv
from pettingzoo.utils.wrappers import (
    MultiEpisodeEnv,
    MultiEpisodeParallelEnv,
    OrderEnforcingWrapper,
    TerminateIllegalWrapper,
)
from supersuit import black_death_v3, frame_skip_v0, observation_lambda_v0
from supersuit.vector import ConcatVecEnv, MarkovVectorEnv

import pz_policymap as pm
from pz_policymap.wrappers.autoreset import Autoreset
from tests.learner_envs import ScriptedAEC
from tests.stub_envs import StubAEC
from tests.vector_envs import Countdown, Mortal, ScriptedVector, in_mode, needs_modes


class Scripted(ParallelEnv):
    """Follows a script of steps `{agent: (reward, "t" or "u" or "")}`; agents first named in a later step join then."""

    metadata: ClassVar = {"name": "scripted_v0", "is_parallelizable": True}
    render_mode = None

    def __init__(self, *script, agents=("a", "b"), infos=None, fail_at=()):
        self.script, self.start, self.infos, self.fail_at = script, list(agents), infos or {}, set(fail_at)
        self.possible_agents = list(dict.fromkeys([*agents, *(agent for step in script for agent in step)]))

    def observation_space(self, agent):
        return gymnasium.spaces.Discrete(99)

    def action_space(self, agent):
        return gymnasium.spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        self.time, self.agents = 0, list(self.start)
        return dict.fromkeys(self.agents, 0), {agent: {} for agent in self.agents}

    def step(self, actions):
        self.time += 1
        if self.time in self.fail_at:
            self.fail_at.remove(self.time)
            self.time -= 1
            raise RuntimeError("step fails")
        step = self.script[self.time - 1]
        self.agents = [agent for agent, (_, end) in step.items() if not end]
        return (
            dict.fromkeys(step, self.time),
            {agent: reward for agent, (reward, _) in step.items()},
            {agent: end == "t" for agent, (_, end) in step.items()},
            {agent: end == "u" for agent, (_, end) in step.items()},
            {agent: dict(self.infos.get((self.time, agent), {})) for agent in step},
        )


def scripted(*script, policies=None, agents=("a", "b"), infos=None, fail_at=(), **settings):
    """Returns a recorded script and the list that receives its episodes."""
    env, played = Scripted(*script, agents=agents, infos=infos, fail_at=fail_at), []
    policies = policies or {agent: seat for seat, agent in enumerate(env.possible_agents)}
    return pm.record_results(pm.wrap(env, pm.Fixed(policies)), played.append, **settings), played


class Generated(generated_agents_parallel_v0.parallel_env):
    """PettingZoo's example without possible_agents, which does not count its steps and would never end."""

    def step(self, actions):
        self.num_steps += 1
        return super().step(actions)


def play_parallel(env, episodes=1, seed=0):
    """Plays random episodes; returns the rewards of each agent, summed over the final episode."""
    rng = np.random.default_rng(seed)
    for episode in range(episodes):
        env.reset(seed=seed + episode)
        total = {}
        while env.agents:
            outcome = env.step({agent: sample(env, agent, rng) for agent in env.agents})
            for agent, reward in outcome[1].items():
                total[agent] = total.get(agent, 0.0) + reward
    return total


def play_aec(env, episodes=1, seed=0, legal=True):
    """Plays random episodes; returns the rewards of each agent from `last()`, summed over the final episode."""
    rng = np.random.default_rng(seed)
    for episode in range(episodes):
        env.reset(seed=seed + episode)
        total = {}
        for agent in env.agent_iter():
            observation, reward, terminated, truncated, _ = env.last()
            total[agent] = total.get(agent, 0.0) + reward
            mask = observation.get("action_mask") if isinstance(observation, dict) and legal else None
            env.step(None if terminated or truncated else sample(env, agent, rng, mask))
    return total


def sample(env, agent, rng, mask=None):
    choices = np.arange(env.action_space(agent).n) if mask is None else np.flatnonzero(mask)
    return int(rng.choice(choices))


def both(env):
    """Wraps an environment with policy 0 in its first seat, 1 in its second, and so on."""
    return pm.wrap(env, pm.Fixed({agent: seat for seat, agent in enumerate(env.possible_agents)}))


class TestEnd:
    def test_episode_is_recorded_in_the_step_of_the_last_end(self):
        env, played = scripted({"a": (1.0, ""), "b": (0.0, "t")}, {"a": (2.0, "")}, {"a": (0.5, "t")})
        env.reset()
        for expected in (0, 0, 1):
            env.step(dict.fromkeys(env.agents, 0))
            assert len(played) == expected
        assert played == [pm.Episode([0, 1], [3.5, 0.0], [3, 1], agents=["a", "b"])]

    def test_truncation_ends_an_episode(self):
        env, played = scripted({"a": (1.0, "u"), "b": (2.0, "u")})
        play_parallel(env)
        assert [episode.returns for episode in played] == [(1.0, 2.0)]

    def test_episode_interrupted_by_reset_is_not_recorded(self):
        env, played = scripted({"a": (1.0, ""), "b": (9.0, "t")}, {"a": (1.0, "t")})
        env.reset()
        env.step({"a": 0, "b": 0})
        play_parallel(env)
        assert [episode.returns for episode in played] == [(2.0, 9.0)]

    def test_steps_after_the_end_are_not_recorded(self):
        env, played = scripted({"a": (1.0, "t"), "b": (1.0, "t")}, {})
        play_parallel(env)
        env.step({})
        assert len(played) == 1

    def test_agent_that_returns_under_its_name_continues(self):
        env, played = scripted(
            {"a": (1.0, "t"), "b": (1.0, "")},
            {"a": (1.0, ""), "b": (1.0, "t")},  # a has returned, and b ends
            {"a": (5.0, "t")},
        )
        play_parallel(env)
        assert [(episode.returns, episode.lengths) for episode in played] == [((7.0, 2.0), (2, 2))]

    def test_agent_that_joins_mid_episode_has_a_seat(self):
        env, played = scripted({"a": (0.0, ""), "b": (0.0, "t"), "c": (0.0, "")}, {"a": (0.0, "t"), "c": (4.0, "t")})
        play_parallel(env)
        assert played == [pm.Episode([0, 1, 2], [0.0, 0.0, 4.0], [2, 1, 1], agents=["a", "b", "c"])]

    @pytest.mark.parametrize("make", [generated_agents_env_v0.env, Generated])
    def test_agents_missing_from_possible_agents_are_recorded(self, make):
        played, told, last = [], {}, {}
        env = pm.record_results(pm.wrap(make(), 3, seed=0), played.append)
        observed = env.reset(seed=0)
        while not played:
            if observed is None:
                last = {env.agent_selection: env.last()[4]}
                terminated, truncated = env.last()[2:4]
                env.step(None if terminated or truncated else env.action_space(env.agent_selection).sample())
                rewards = env.rewards if not (terminated or truncated) else {}
            else:
                _, rewards, _, _, last = env.step({agent: env.action_space(agent).sample() for agent in env.agents})
            for agent, reward in rewards.items():
                told[agent] = told.get(agent, 0.0) + reward
        assert dict(zip(played[0].agents, played[0].returns, strict=True)) == told
        assert len(told) > 5
        tags = dict(zip(played[0].agents, played[0].policies, strict=True))
        assert {agent: info["policy_id"] for agent, info in last.items()}.items() <= tags.items()
        assert tags == env.policy_ids

    def test_aec_episode_is_recorded_before_dead_steps(self):
        env, played = tictactoe_v3.env(), []
        env = pm.record_results(both(env), played.append)
        env.reset()
        for move in (0, 3, 1, 4, 2):  # the first player fills a row
            assert not played
            env.step(move)
        assert len(env.agents) == 2
        assert played == [pm.Episode([0, 1], [1.0, -1.0], [3, 2], agents=["player_1", "player_2"])]
        for _ in env.agent_iter():
            env.step(None)
        assert len(played) == 1

    @pytest.mark.parametrize("make", [simple_spread_v3.parallel_env, simple_spread_v3.env])
    def test_reset_that_raises_does_not_interrupt_the_episode(self, make):
        def play(interrupted):
            episodes = []
            env = pm.record_results(pm.wrap(make(max_cycles=6), 4, seed=0), episodes.append)
            env.reset(seed=0)
            for turn in range(100):
                if turn == 3 and interrupted:
                    with pytest.raises(KeyError):
                        env.reset(options={"policy_ids": {"missing": 0}})
                if not env.agents:
                    break
                if isinstance(env, ParallelEnv):
                    env.step(dict.fromkeys(env.agents, 1))
                else:
                    env.step(None if env.last()[2] or env.last()[3] else 1)
            return episodes

        assert play(interrupted=True) == play(interrupted=False)
        assert len(play(interrupted=False)) == 1

    def test_vector_reset_that_raises_does_not_interrupt_the_episode(self):
        episodes = []
        tagged = pm.wrap(gymnasium.make_vec("CartPole-v1", num_envs=2), 4, seed=0)
        env = pm.record_results(tagged, episodes.append)
        env.reset(seed=0)
        env.step(np.array([0, 0]))
        with pytest.raises(ValueError, match="policy_ids"):
            env.reset(options={"policy_ids": 99})
        while len(episodes) < 2:
            env.step(np.array([0, 0]))
        assert all(episode.lengths[0] == episode.returns[0] > 5 for episode in episodes)

    def test_step_that_raises_may_be_repeated(self):
        env, played = scripted({"a": (1.0, ""), "b": (1.0, "")}, {"a": (1.0, "t"), "b": (1.0, "t")}, fail_at=[2])
        env.reset()
        env.step({"a": 0, "b": 0})
        with pytest.raises(RuntimeError):
            env.step({"a": 0, "b": 0})
        env.step({"a": 0, "b": 0})
        assert played[0].returns == (2.0, 2.0)

    def test_results_of_whole_episodes_are_unbiased(self):
        """In a fair survival game of four, results taken at the death of the learner would favour it."""
        rng = np.random.default_rng(0)
        payoff = pm.Payoff(2, prior=0.0)
        for _ in range(2000):
            order = rng.permutation(list("abcd")).tolist()
            script = [
                {agent: (1.0, "t" if agent == order[time] else "") for agent in order[time:]} for time in range(4)
            ]
            env = Scripted(*script, agents="abcd")
            env = pm.record_results(pm.wrap(env, pm.Fixed({"a": 0, "b": 1, "c": 1, "d": 1})), payoff)
            play_parallel(env)
        assert payoff.games[0, 1] == 2000
        assert payoff.win_rates[0, 1] == pytest.approx(0.5, abs=4 * 0.5 / 2000**0.5)

    def test_state_after_the_last_step_counts_the_recorded_episode(self):
        payoff = pm.Payoff(2)
        env = pm.record_results(pm.wrap(tictactoe_v3.env(), 2, seed=0), payoff)
        env.reset()
        for move in (0, 3, 1, 4, 2):
            assert env.state_dict()["episode"] == -1
            env.step(move)
        assert env.state_dict()["episode"] == 0
        assert payoff.episodes.sum() > 0


AEC_GAMES = [
    tictactoe_v3.env,
    connect_four_v3.env,
    lambda: rps_v2.env(max_cycles=4),
    lambda: simple_spread_v3.env(max_cycles=4),
    lambda: simple_adversary_v3.env(max_cycles=4),
]


class TestOutcome:
    @pytest.mark.parametrize("make", AEC_GAMES)
    def test_aec_returns_equal_the_rewards_of_last(self, make):
        played = []
        told = play_aec(pm.record_results(both(make()), played.append))
        assert set(played[0].agents) == set(told)
        np.testing.assert_allclose(played[0].returns, [told[agent] for agent in played[0].agents], rtol=1e-12)

    def test_parallel_returns_equal_the_sum_of_rewards(self):
        played = []
        told = play_parallel(pm.record_results(both(simple_spread_v3.parallel_env(max_cycles=9)), played.append))
        np.testing.assert_allclose(played[0].returns, [told[agent] for agent in played[0].agents], rtol=1e-12)
        assert played[0].lengths == (9, 9, 9)

    def test_sum_of_ten_tenths_is_exactly_one(self):
        steps = [{"a": (0.1, ""), "b": (0.0, "")}] * 9
        env, played = scripted(*steps, {"a": (0.1, "t"), "b": (1.0, "t")})
        play_parallel(env)
        assert played[0].returns == (1.0, 1.0)

    def test_rewards_of_any_number_type_are_accepted(self):
        env, played = scripted({"a": (np.float32(0.5), "t"), "b": (np.int64(2), "t")})
        play_parallel(env)
        assert played[0].returns == (0.5, 2.0)
        assert type(played[0].returns[1]) is float

    def test_rewards_of_shape_one_are_numbers_and_none_is_zero(self):
        env, played = scripted({"a": (np.array([0.5]), "t"), "b": (None, "t")})
        env.reset()
        env.step({"a": 0, "b": 0})
        assert played[0].returns == (0.5, 0.0)

    @pytest.mark.parametrize("where", [(), (0,), (1,), (2,), (3,), (4,), (2, 3)])
    def test_keys_that_are_not_agents_and_missing_truncations_are_ignored(self, where):
        class Habits(Scripted):
            def step(self, actions):
                outcome = super().step(actions)
                for place in where:
                    outcome[place]["__all__"] = {} if place == 4 else 0
                return outcome if where else (*outcome[:3], {}, outcome[4])

        played = []
        env = Habits({"a": (1.0, ""), "b": (-1.0, "")}, {"a": (1.0, "t"), "b": (-1.0, "t")})
        play_parallel(pm.record_results(both(env), played.append))
        assert played == [pm.Episode([0, 1], [2.0, -2.0], [2, 2], agents=["a", "b"])]

    @pytest.mark.parametrize("where", ["rewards", "terminations", "truncations", "infos"])
    def test_aec_keys_that_are_not_agents_are_ignored(self, where):
        class Habits(ScriptedAEC):
            def reset(self, seed=None, options=None):
                super().reset(seed, options)
                getattr(self, where)["__all__"] = {} if where == "infos" else False

            def _accumulate_rewards(self):
                pass

        played = []
        env = pm.record_results(both(Habits([[("a", {"a": 1.0}, ()), ("b", {"b": 2.0}, ("a", "b"))]])), played.append)
        env.reset()
        env.step(0), env.step(0)
        assert played == [pm.Episode([0, 1], [1.0, 2.0], [1, 1], agents=["a", "b"])]

    def test_lengths_stop_at_the_first_end_where_agents_lag(self):
        class Lagging(Scripted):
            def step(self, actions):
                before = self.agents
                outcome = super().step(actions)
                self.lag, self.agents = self.agents, before if self.time < 3 else []
                return outcome

        played = []
        script = [{"a": (1.0, "t"), "b": (1.0, "")}, {"a": (0.0, "t"), "b": (1.0, "")}, {"b": (1.0, "t")}]
        env = pm.record_results(both(Lagging(*script)), played.append)
        play_parallel(env)
        assert played[0].lengths == (1, 3)

    def test_infos_for_the_score_are_copies(self):
        board, seen = np.zeros(1), []

        class Board(Scripted):
            def step(self, actions):
                board[0] += 1
                *outcome, infos = super().step(actions)
                return *outcome, {agent: {"clock": board} for agent in infos}

        def score(returns, infos):
            seen.append({agent: float(info["clock"][0]) for agent, info in infos.items()})
            return returns

        env = Board({"a": (0.0, "t"), "b": (0.0, "")}, {"b": (0.0, "t")})
        play_parallel(pm.record_results(both(env), [].append, score=score))
        assert seen == [{"a": 1.0, "b": 2.0}]

    def test_all_sinks_receive_the_episode(self):
        payoff, statistics, log, count = pm.Payoff(2), pm.PolicyStatistics(2), [], []
        env = Scripted({"a": (1.0, "t"), "b": (0.0, "t")})
        env = pm.record_results(both(env), payoff, statistics, log.append, lambda episode: count.append(1))
        play_parallel(env, episodes=3)
        assert payoff.wins[0, 1] == statistics.episodes[0] == len(log) == len(count) == 3
        again = pm.Payoff(2)
        for episode in log:
            again.record(episode)
        np.testing.assert_array_equal(again.win_rates, payoff.win_rates)

    @pytest.mark.parametrize(
        "team_of",
        [{"red_0": "r", "red_1": "r", "blue_0": "b"}, lambda agent: agent[0], "prefix"],
    )
    def test_teams_win_and_lose_together(self, team_of):
        payoff = pm.Payoff(3)
        env = Scripted(
            {"red_0": (9.0, "t"), "red_1": (-9.0, "t"), "blue_0": (1.0, "t")}, agents=["red_0", "red_1", "blue_0"]
        )
        play_parallel(pm.record_results(both(env), payoff, team_of=team_of))
        assert payoff.wins.tolist() == [[0, 0, 0], [0, 0, 0], [1, 1, 0]]
        assert payoff.games[0, 1] == 0

    @pytest.mark.parametrize("api", ["parallel", "aec"])
    def test_score_receives_returns_and_last_infos(self, api):
        infos = {(1, "b"): {"flags": 7}, (2, "a"): {"flags": 3}}
        seen = []

        def score(returns, last):
            seen.append((returns, {agent: info["flags"] for agent, info in last.items()}))
            return seen[-1][1]

        env = Scripted({"a": (5.0, ""), "b": (1.0, "t")}, {"a": (5.0, "t")}, infos=infos)
        played = []
        if api == "parallel":
            play_parallel(pm.record_results(both(env), played.append, score=score))
        else:
            play_aec(pm.record_results(both(parallel_to_aec(env)), played.append, score=score))
        assert seen == [({"a": 10.0, "b": 1.0}, {"a": 3, "b": 7})]
        assert (played[0].returns, played[0].scores) == ((10.0, 1.0), (3.0, 7.0))


def same(value, *rest):
    """Returns an observation or a space unchanged."""
    return value


STACKS = {
    "aec": lambda env, record: record(both(env)),
    "aec, inside an order check": lambda env, record: OrderEnforcingWrapper(record(both(env))),
    "aec, outside an order check": lambda env, record: record(OrderEnforcingWrapper(both(env))),
    "aec, inside the conversion": lambda env, record: aec_to_parallel(record(both(env))),
    "aec, outside the conversion": lambda env, record: record(aec_to_parallel(both(env))),
    "parallel": lambda env, record: record(both(aec_to_parallel(env))),
    "parallel, inside the conversion": lambda env, record: parallel_to_aec(record(both(aec_to_parallel(env)))),
    "parallel, outside the conversion": lambda env, record: record(parallel_to_aec(both(aec_to_parallel(env)))),
    "aec, inside SuperSuit's wrappers": lambda env, record: observation_lambda_v0(record(both(env)), same, same),
    "aec, outside SuperSuit's wrappers": lambda env, record: record(observation_lambda_v0(both(env), same, same)),
    "aec, two recorders": lambda env, record: record(pm.record_results(both(env), [].append)),
}


class TestStacks:
    @pytest.mark.parametrize("stack", STACKS.values(), ids=STACKS.keys())
    def test_ledger_is_the_same_in_every_stack(self, stack):
        payoffs = []
        for wrap in (STACKS["aec"], stack):
            payoff = pm.Payoff(2)
            env = wrap(rps_v2.env(max_cycles=4), lambda env, to=payoff: pm.record_results(env, to))
            actions = np.random.default_rng(0).integers(0, 3, (20, 4, 2)).tolist()
            for episode in actions:
                env.reset()
                for pair in episode:
                    if hasattr(env, "agent_iter"):
                        env.step(pair[0])
                        env.step(pair[1])
                    else:
                        env.step(dict(zip(["player_0", "player_1"], pair, strict=True)))
            payoffs.append(payoff)
        assert payoffs[0].games[0, 1] == 20
        np.testing.assert_array_equal(payoffs[0].state_dict()["table"], payoffs[1].state_dict()["table"])

    def test_wrapper_inside_that_empties_reset_infos_is_accepted(self):
        """SuperSuit's frame_skip in AEC: tags come with the first step, and in the last one each is its neighbour's."""
        played = []
        env = frame_skip_v0(both(simple_spread_v3.env(max_cycles=6)), 2)
        told = play_aec(pm.record_results(env, played.append))
        assert played[0].policies == (0, 1, 2)
        np.testing.assert_allclose(played[0].returns, [told[agent] for agent in played[0].agents])

    def test_black_death_inside_is_accepted(self):
        env, played = Mortal(), []
        told = play_parallel(pm.record_results(black_death_v3(both(env)), played.append))
        assert played[0].policies == (0, 1, 2)
        assert dict(zip(played[0].agents, played[0].returns, strict=True)) == told

    def test_turns_converted_to_parallel_are_recorded(self):
        payoff = pm.Payoff(2)
        env = pm.record_results(turn_based_aec_to_parallel(both(tictactoe_v3.env())), payoff)
        env.reset()
        for move in (0, 3, 1, 4, 2):
            env.step({"player_1": move, "player_2": move})
        assert payoff.wins.tolist() == [[0, 1], [0, 0]]
        assert env.step({}) == ({}, {}, {}, {})

    @pytest.mark.parametrize("moves", [(0, 3, 3), (0, 0), (4, 0, 1, 0)])
    def test_illegal_games_are_recorded_inside_and_outside_their_wrapper(self, moves):
        outcomes = []
        for inside in (True, False):
            env, played = both(raw_tictactoe()), []
            env = (
                TerminateIllegalWrapper(pm.record_results(env, played.append), -1)
                if inside
                else TerminateIllegalWrapper(env, -1)
            )
            env = env if inside else pm.record_results(env, played.append)
            env.reset()
            for move in moves:
                env.last()
                env.step(move)
            for _ in env.agent_iter():
                env.step(None)
            env.reset()
            outcomes.append([episode.returns for episode in played])
        loser = (len(moves) - 1) % 2
        assert outcomes[0] == outcomes[1] == [(-1.0, 0.0) if loser == 0 else (0.0, -1.0)]

    @pytest.mark.parametrize("inside", [True, False])
    def test_aec_wrapper_that_resets_by_itself_is_accepted(self, inside):
        played = []
        env = pm.wrap(tictactoe_v3.env(), 50, resample_every=1, seed=0)
        env = MultiEpisodeEnv(pm.record_results(env, played.append), 3) if inside else MultiEpisodeEnv(env, 3)
        env = env if inside else pm.record_results(env, played.append)
        env.reset()
        for _ in range(3):
            for move in (0, 3, 1, 4, 2, None, None):
                env.step(move)
        expected = pm.PolicyAssigner(50, ["player_1", "player_2"], resample_every=1, seed=0)
        assert [list(episode.policies) for episode in played] == [
            expected.begin_episodes()[0].tolist() for _ in range(3)
        ]
        assert [episode.returns for episode in played] == [(1.0, -1.0)] * 3

    def test_parallel_wrapper_inside_that_resets_by_itself_raises(self):
        def make():
            return pm.wrap(rps_v2.parallel_env(max_cycles=2), 50, resample_every=1, seed=0)

        played = []
        play_parallel(MultiEpisodeParallelEnv(pm.record_results(make(), played.append), 3))
        assert len(played) == 3
        with pytest.raises(ValueError, match="put record_results inside the wrapper that resets"):
            play_parallel(pm.record_results(MultiEpisodeParallelEnv(make(), 3), played.append))

    def test_assigner_is_found_through_a_recorder(self):
        env = pm.record_results(both(rps_v2.env()), pm.Payoff(2))
        assert pm.find_assigner(env) is env.assigner
        env.reset()
        assert env.policy_ids == {"player_0": 0, "player_1": 1}

    @pytest.mark.parametrize("clone", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
    @pytest.mark.parametrize("make", [rps_v2.env, rps_v2.parallel_env])
    def test_copy_records_into_a_copy_of_the_ledger(self, clone, make):
        payoff = pm.Payoff(2)
        env = pm.record_results(both(make(max_cycles=2)), payoff)
        play = play_aec if hasattr(env, "agent_iter") else play_parallel
        play(env)
        twin = clone(env)
        play(twin, episodes=2)
        assert payoff.games[0, 1] == 1

    @pytest.mark.filterwarnings("ignore")
    def test_pettingzoo_api_tests_pass(self):
        api_test(pm.record_results(both(tictactoe_v3.env()), pm.Payoff(2)), num_cycles=50)
        parallel_api_test(pm.record_results(both(rps_v2.parallel_env()), pm.Payoff(2)), num_cycles=50)


class TestErrors:
    @pytest.mark.parametrize("make", [rps_v2.env, rps_v2.parallel_env])
    def test_first_step_without_a_policy_wrapper_raises(self, make):
        env = pm.record_results(make(), pm.Payoff(2))
        env.reset()
        with pytest.raises(ValueError, match=r"infos of agent 'player_0' must have the key 'policy_id'.*call record"):
            env.step(0 if hasattr(env, "agent_iter") else {"player_0": 0, "player_1": 0})

    def test_agent_without_a_tag_that_never_acts_raises_at_the_end(self):
        infos = {(1, "a"): {"policy_id": 0}}
        env = pm.record_results(Scripted({"a": (1.0, "t"), "c": (0.0, "t")}, agents=["a"], infos=infos), pm.Payoff(2))
        env.reset()
        with pytest.raises(ValueError, match="infos of agent 'c' must have the key 'policy_id'"):
            env.step({"a": 0})

    @pytest.mark.parametrize("settings", [{}, {"info_key": None}, {"info_key": "policy"}])
    def test_other_info_key_is_read(self, settings):
        played = []
        env = pm.wrap(Scripted({"a": (1.0, "t"), "b": (0.0, "t")}), pm.Fixed(3), info_key="policy")
        play_parallel(pm.record_results(env, played.append, **settings))
        assert played[0].policies == (3, 3)

    @pytest.mark.parametrize(
        "env",
        [
            lambda: pm.wrap(StubAEC(), pm.Fixed(3), info_key="policy"),
            lambda: parallel_to_aec(pm.wrap(rps_v2.parallel_env(), pm.Fixed(3), info_key="policy")),
        ],
    )
    def test_info_key_of_the_wrapper_inside_is_read_in_aec_environments(self, env):
        played = []
        play_aec(pm.record_results(env(), played.append))
        assert played[0].policies == (3, 3)

    @pytest.mark.parametrize(
        "make",
        [
            lambda: pm.wrap(SyncVectorEnv([Countdown] * 2), pm.Fixed(3), info_key="policy"),
            lambda: SyncVectorEnv([lambda: pm.wrap(Countdown(), pm.Fixed(3), info_key="policy", env_index=0)] * 2),
        ],
        ids=["outside", "inside"],
    )
    def test_info_key_of_the_wrapper_around_or_in_a_vectorizer_is_read(self, make):
        env = pm.record_results(make(), pm.PolicyStatistics(4))
        _, infos = env.reset(seed=0)  # which raises if the recorder finds no tags
        assert infos["policy"].tolist() == [3, 3]

    def test_info_key_of_a_foreign_wrapper_with_an_assigner_is_the_default(self):
        env, played = Scripted({"a": (1.0, "t")}, agents=["a"], infos={(1, "a"): {"policy_id": 2}}), []
        env.assigner = pm.PolicyAssigner(3, ["a"])
        play_parallel(pm.record_results(env, played.append))
        assert played[0].policies == (2,)

    def test_other_info_key_than_that_of_the_wrapper_raises_with_a_hint(self):
        env = pm.record_results(pm.wrap(rps_v2.parallel_env(), 2, info_key="p"), pm.Payoff(2), info_key="q")
        env.reset()
        with pytest.raises(ValueError, match="must have the key 'q', got none: .* takes the same info_key"):
            env.step({"player_0": 0, "player_1": 0})

    @pytest.mark.parametrize("bad", ["two", 1.0, -1])
    def test_tag_that_is_not_a_policy_id_raises(self, bad):
        env = Scripted({"a": (1.0, "t")}, agents=["a"], infos={(1, "a"): {"policy_id": bad}})
        env = pm.record_results(env, pm.Payoff(2))
        env.reset()
        with pytest.raises((TypeError, ValueError), match=r"infos\['a'\]\['policy_id'\]"):
            env.step({"a": 0})

    @pytest.mark.parametrize("reward", [float("nan"), float("inf")])
    def test_infinite_reward_raises_and_names_the_agent(self, reward):
        env, played = scripted({"a": (1.0, "t"), "b": (reward, "t")})
        env.reset()
        with pytest.raises(ValueError, match="rewards must be finite, got the sum .* for agent 'b'"):
            env.step({"a": 0, "b": 0})
        assert not played

    @pytest.mark.parametrize("share", [lambda ledger: ledger, lambda ledger: ledger.record])
    def test_sink_shared_by_nested_recorders_raises(self, share):
        payoff = pm.Payoff(2)
        inner = pm.record_results(both(rps_v2.env()), payoff)
        with pytest.raises(ValueError, match="sinks must not be shared with a recorder inside"):
            pm.record_results(aec_to_parallel(inner), [].append, share(payoff))
        pm.record_results(inner, pm.Payoff(2))

    def test_vector_reward_raises_and_names_agent_and_reward(self):
        env, _ = scripted({"a": (1.0, "t"), "b": (np.array([1.0, 2.0]), "t")})
        env.reset()
        with pytest.raises(ValueError, match=r"one number per agent, got array\(\[1., 2.\]\) for agent 'b'"):
            env.step({"a": 0, "b": 0})

    @pytest.mark.parametrize("said", [None, {"a": 1.0}, [1.0, 2.0]])
    def test_score_without_an_agent_raises(self, said):
        env, _ = scripted({"a": (1.0, "t"), "b": (0.0, "t")}, score=lambda returns, infos: said)
        env.reset()
        with pytest.raises(ValueError, match="score must return a dict"):
            env.step({"a": 0, "b": 0})

    @pytest.mark.parametrize(
        ("sinks", "settings", "error", "message"),
        [
            ((7,), {}, TypeError, "sinks must have a record method"),
            ((pm.Payoff,), {}, TypeError, "sinks must be objects, got the class Payoff"),
            (([].append,), {"team_of": 7}, TypeError, "team_of"),
            (([].append,), {"team_of": "suffix"}, ValueError, "team_of"),
            (([].append,), {"score": 7}, TypeError, "score must be a function"),
            (([].append,), {"info_key": 7}, TypeError, "info_key"),
            (([].append,), {"agents": 2}, TypeError, "agents and autoreset_mode are for vector"),
            (([].append,), {"autoreset_mode": "NextStep"}, TypeError, "agents and autoreset_mode"),
        ],
    )
    @pytest.mark.parametrize("make", [rps_v2.env, rps_v2.parallel_env])
    def test_bad_input_names_the_argument(self, make, sinks, settings, error, message):
        with pytest.raises(error, match=message):
            pm.record_results(both(make()), *sinks, **settings)

    @pytest.mark.parametrize("env", [None, 3, Countdown()])
    def test_non_environment_raises(self, env):
        with pytest.raises(TypeError, match="env must be a PettingZoo"):
            pm.record_results(env, pm.Payoff(2))


@pytest.mark.parametrize("make", [rps_v2.env, rps_v2.parallel_env])
def test_sinks_are_public(make):
    log = Log()
    assert pm.record_results(pm.wrap(make(), 2), log).sinks == (log.record,)


def test_step_before_reset_raises_the_error_of_the_environment():
    env = pm.record_results(pm.wrap(StubAEC(), 2), Log())
    with pytest.raises(AttributeError):
        env.step(0)


def test_step_after_the_end_behaves_as_in_the_bare_environment():
    log = []
    env = pm.record_results(pm.wrap(tictactoe_v3.env(), 2), log.append)
    bare = tictactoe_v3.env()
    for played in (env, bare):
        played.reset(seed=0)
        for move in (0, 3, 1, 4, 2, None, None):
            played.step(move)
        assert played.agents == []
        assert played.step(5) is None
    assert len(log) == 1


MODES = list(Autoreset)


def lives(count, seed):
    """Returns the lengths of the first episodes of an environment alone."""
    env = Countdown()
    env.reset(seed=seed)
    lengths = [env.left]
    for _ in range(count - 1):
        env.reset()
        lengths.append(env.left)
    return lengths


def by_row(played, num_rows=3):
    """Returns (policy, return, length) of the episodes of each environment, identified by their policies."""
    return [
        [(e.policies[0], e.returns[0], e.lengths[0]) for e in played if e.policies[0] % num_rows == row]
        for row in range(num_rows)
    ]


class ByRow(pm.PolicyMapping):
    """Assigns a different policy in every episode of every environment: `3 * episode + env index`."""

    def assign(self, draw):
        return (3 * draw.episode + draw.env_index)[:, None]


VECTORS = {
    "wrapper outside": lambda mode: pm.wrap(
        in_mode(SyncVectorEnv, [Countdown] * 3, mode), ByRow(), resample_every=1, seed=0
    ),
    "wrappers inside": lambda mode: in_mode(
        SyncVectorEnv, pm.env_fns(Countdown, 3, ByRow(), resample_every=1, seed=0), mode
    ),
    "wrappers inside, in processes": lambda mode: in_mode(
        AsyncVectorEnv, pm.env_fns(Countdown, 3, ByRow(), resample_every=1, seed=0), mode
    ),
}


@needs_modes
class TestVectors:
    @pytest.mark.parametrize("mode", MODES)
    @pytest.mark.parametrize("make", VECTORS.values(), ids=VECTORS.keys())
    def test_episodes_are_recorded_with_their_policies_in_every_mode(self, make, mode):
        played = []
        env = pm.record_results(make(mode), played.append)
        env.reset(seed=5)
        for _ in range(40):
            _, _, terminated, truncated, _ = env.step(np.zeros(3, np.int64))
            if mode is Autoreset.DISABLED and (terminated | truncated).any():
                env.reset(options={"reset_mask": terminated | truncated})
        env.close()
        for row, episodes in enumerate(by_row(played)):
            assert len(episodes) > 5
            expected = lives(len(episodes), seed=5 + row)
            assert episodes == [(3 * e + row, float(steps), steps) for e, steps in enumerate(expected)]

    @pytest.mark.parametrize("mode", MODES)
    def test_vector_episode_interrupted_by_reset_is_not_recorded(self, mode):
        played = []
        env = pm.record_results(
            pm.wrap(ScriptedVector(3, [[], [1]], mode), ByRow(), resample_every=1, seed=0), played.append
        )
        env.reset()
        env.step(0)
        env.reset(options={"reset_mask": np.array([True, False, False])})
        env.step(0)
        assert [(e.policies, e.returns) for e in played] == [((1,), (2.0,))]
        env.reset()
        env.step(0)
        assert len(played) == 1

    def test_reset_step_counts_for_no_episode_in_next_step_mode(self):
        played = []
        vector = ScriptedVector(1, [[0], [], [], [0]], MODES[0])  # it pays 1 in its reset step, too
        env = pm.record_results(pm.wrap(vector, ByRow(), resample_every=1, seed=0), played.append)
        env.reset()
        for _ in range(4):
            env.step(0)
        assert [(e.policies, e.returns, e.lengths) for e in played] == [((0,), (1.0,), (1,)), ((3,), (2.0,), (2,))]

    @pytest.mark.parametrize("agents", [2, ["x", "y"]])
    @pytest.mark.parametrize("named_by", ["the wrapper inside", "the caller"])
    def test_rows_of_one_environment_are_the_seats_of_one_episode(self, agents, named_by):
        played = []
        names = ["agent_0", "agent_1"] if agents == 2 else agents
        vector = ScriptedVector(4, [[0], [2, 3], [1]], Autoreset.SAME_STEP)
        env = pm.wrap(vector, pm.Fixed({name: seat for seat, name in enumerate(names)}), agents=agents)
        if named_by == "the caller":
            env = pm.record_results(env, played.append, agents=agents)
        else:
            env = pm.record_results(env, played.append)
        env.reset()
        for expected in (0, 1, 2):
            env.step(0)
            assert len(played) == expected
        assert played[0] == pm.Episode([0, 1], [2.0, 2.0], [2, 2], agents=names)
        assert played[1] == pm.Episode([0, 1], [3.0, 3.0], [1, 3], agents=names)  # row 0 had restarted

    @pytest.mark.parametrize("seats", [1, 2], ids=["told by the wrapper", "told by the recorder"])
    def test_recorder_attached_mid_run_records_whole_episodes_only(self, seats):
        played = []
        ends = [[0], [1], [0], [1], [0], [1], [0]]
        env = pm.wrap(ScriptedVector(2, ends, Autoreset.SAME_STEP), 3, seed=0, agents=3 - seats)
        env.reset()
        env.step(0)
        env = pm.record_results(env, played.append, agents=2)
        for _ in range(4):
            env.step(0)
        assert [e.lengths for e in played] == ([(1, 2)] if seats == 1 else [])
        env.reset()
        env.step(0)
        env.step(0)
        assert [e.lengths for e in played] == ([(1, 2), (2, 1)] if seats == 1 else [(2, 1)])

    def test_agents_of_the_policy_wrapper_are_found_through_wrappers(self):
        played = []
        env = pm.wrap(ScriptedVector(4, [[0, 1]], None), 3, seed=0, agents=["x", "y"], autoreset_mode="SameStep")
        env = pm.record_results(ClipReward(env, 0.0, 0.5), played.append)
        env.reset()
        env.step(0)
        assert [(episode.agents, episode.returns) for episode in played] == [(("x", "y"), (0.5, 0.5))]

    @pytest.mark.parametrize("outside", [True, False])
    def test_supersuit_vector_records_as_the_environments_inside(self, outside):
        inner, outer = [], []

        def make(index):
            env = rps_v2.parallel_env(max_cycles=3)
            if not outside:
                env = pm.wrap(env, 40, resample_every=1, seed=0, env_index=index)
                env = pm.record_results(env, inner.append)
            return MarkovVectorEnv(env)

        env = ConcatVecEnv([lambda: make(0), lambda: make(1)])
        if outside:
            env = pm.wrap(env, 40, resample_every=1, seed=0, agents=["player_0", "player_1"])
            env = pm.record_results(env, outer.append)
        else:
            env = pm.record_results(env, outer.append, agents=["player_0", "player_1"])
        env.reset()
        actions = np.random.default_rng(0).integers(0, 3, (30, 4))
        for action in actions:
            env.step(action)
        assert len(outer) == 20
        assert all(e.lengths == (3, 3) for e in outer)
        if not outside:
            assert outer == inner
        assigners = [pm.PolicyAssigner(40, ["a", "b"], seed=0, env_index=i, resample_every=1) for i in range(2)]
        for episode in range(10):
            for index, assigner in enumerate(assigners):
                assert list(outer[2 * episode + index].policies) == assigner.begin_episodes()[0].tolist()

    def test_end_episodes_records_rows_that_respawn(self):
        played = []
        vector = ScriptedVector(4, [[0, 1], [0, 1, 2, 3], []], Autoreset.SAME_STEP)
        env = pm.wrap(vector, ByRow2(), agents=2, resample_every=1, seed=0, autoreset_mode="Disabled")
        env = pm.record_results(env, played.append)
        env.reset()
        env.step(0)
        env.step(0)
        assert not played
        assert env.end_episodes(np.array([False, True])).tolist() == [0, 0, 4, 4]
        assert [(e.policies, e.returns) for e in played] == [((1, 1), (2.0, 2.0))]
        env.step(0)
        env.end_episodes([0, 1])
        assert [(e.policies, e.returns) for e in played[1:]] == [((0, 0), (3.0, 3.0)), ((4, 4), (1.0, 1.0))]

    def test_reset_records_an_episode_that_had_ended(self):
        played = []
        env = pm.wrap(ScriptedVector(2, [[0], []], None), ByRow(), resample_every=1, seed=0, autoreset_mode="Disabled")
        env = pm.record_results(env, played.append)
        env.reset()
        env.step(0)
        env.reset()
        assert [e.policies for e in played] == [(0,)]

    @pytest.mark.parametrize("mode", MODES)
    def test_score_receives_terminal_infos(self, mode):
        played = []
        env = SyncVectorEnv(
            pm.env_fns(lambda: Countdown(infos=lambda env: {"left": env.left, "deep": {"x": 2 * env.left}}), 2, 2),
            autoreset_mode=mode.value,
        )
        seen = []

        def score(returns, infos):
            seen.append(infos["agent_0"])
            return {"agent_0": infos["agent_0"]["left"] + 10.0}

        env = pm.record_results(env, played.append, score=score)
        env.reset(seed=0)
        for _ in range(12):
            _, _, terminated, _, _ = env.step(np.zeros(2, np.int64))
            if mode is Autoreset.DISABLED and terminated.any():
                env.reset(options={"reset_mask": terminated})
        assert len(seen) > 2
        assert all(info["left"] == 0 and info["deep"] == {"x": 0} for info in seen)
        assert {e.scores for e in played} == {(10.0,)}

    def test_score_receives_list_infos(self):
        played = []
        env = ConcatVecEnv(
            [
                lambda: MarkovVectorEnv(
                    both(
                        Scripted({"a": (1.0, "t"), "b": (0.0, "t")}, infos={(1, "a"): {"won": 0}, (1, "b"): {"won": 1}})
                    )
                )
            ]
        )
        env = pm.record_results(
            env, played.append, agents=["a", "b"], score=lambda returns, infos: {a: i["won"] for a, i in infos.items()}
        )
        env.reset()
        env.step(np.zeros(2, np.int64))
        assert played[0].scores == (0.0, 1.0)

    def test_other_attributes_are_those_of_the_environment(self):
        env = pm.record_results(pm.wrap(ScriptedVector(2), 5, seed=0), Log())
        env.reset()
        assert env.policy_ids.shape == (2,)
        assert pm.find_assigner(env) is env.assigner
        assert repr(env) == f"<RecordResultsVector<{env.env!r}>>"
        with pytest.raises(AttributeError):
            env._nothing  # noqa: B018

    @pytest.mark.parametrize("clone", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
    def test_copy_continues_as_the_original(self, clone):
        played = []
        env = pm.record_results(
            pm.wrap(ScriptedVector(3, [[], [1], [0]] * 9, MODES[0]), ByRow(), resample_every=1, seed=0), Log()
        )
        env.reset()
        env.step(0)
        twin = clone(env)
        for one in (env, twin):
            for _ in range(9):
                one.step(0)
        played, again = (one._recording.sinks[0].__self__.episodes for one in (env, twin))
        assert len(played) > 3
        assert played == again
        assert played is not again

    @pytest.mark.parametrize(
        ("settings", "error", "message"),
        [
            ({"agents": 2}, ValueError, "agents must divide the 3 rows"),
            ({"agents": []}, ValueError, "agents must divide the 3 rows"),
            ({"agents": 0}, ValueError, "agents"),
            ({"autoreset_mode": "Sometimes"}, ValueError, "autoreset_mode"),
        ],
    )
    def test_bad_input_names_the_argument(self, settings, error, message):
        with pytest.raises(error, match=message):
            pm.record_results(ScriptedVector(3), Log(), **settings)

    @pytest.mark.parametrize(
        ("infos", "error", "message"),
        [
            ({}, ValueError, "infos of row 0 have no 'policy_id'"),
            ({"policy_id": np.array([0, 1, 2]), "_policy_id": np.array([True, False, True])}, ValueError, "row 1"),
            ({"policy_id": np.array([0.0, 1.0, 2.0])}, TypeError, "must be integers"),
            ({"policy_id": np.array([0, -1, 2])}, ValueError, "must be >= 0"),
            ([{"policy_id": 0}, {"policy_id": 0}, {}], ValueError, "row 2"),
        ],
    )
    def test_row_without_a_tag_raises(self, infos, error, message):
        env = pm.record_results(ScriptedVector(3, infos=infos), Log())
        with pytest.raises(error, match=message):
            env.reset()

    def test_undeclared_autoreset_mode_must_be_given(self):
        infos = {"policy_id": np.array([0, 1])}
        with pytest.raises(ValueError, match="autoreset_mode must be given"):
            pm.record_results(ScriptedVector(2, mode=None, infos=infos), Log()).reset()
        env, played = ScriptedVector(2, [[0]], mode=None, infos=infos), []
        env = pm.record_results(env, played.append, autoreset_mode="SameStep")
        env.reset()
        env.step(0)
        assert len(played) == 1

    def test_vector_without_sinks_is_refused(self):
        with pytest.raises(ValueError, match="sinks must hold at least one"):
            pm.record_results(ScriptedVector(2))

    def test_ledger_in_two_nested_recorders_is_refused(self):
        payoff = pm.Payoff(2)
        env = pm.record_results(pm.wrap(ScriptedVector(2), 2, seed=0, agents=2), payoff)
        with pytest.raises(ValueError, match="sinks must not be shared with a recorder inside"):
            pm.record_results(ClipReward(env, 0.0, 1.0), payoff)
        pm.record_results(env, pm.Payoff(2))

    def test_ledger_inside_and_outside_a_vectorizer_is_refused(self):
        payoff = pm.Payoff(2)
        inner = pm.record_results(both(rps_v2.parallel_env(max_cycles=3)), payoff)
        vector = ConcatVecEnv([lambda: MarkovVectorEnv(inner)])
        with pytest.raises(ValueError, match="sinks must not be shared with a recorder inside"):
            pm.record_results(vector, payoff, agents=2)
        assert len(pm.record_results(vector, pm.Payoff(2), agents=2).sinks) == 1

    def test_payoff_without_agents_is_refused(self):
        with pytest.raises(ValueError, match="agents must be given for a Payoff"):
            pm.record_results(pm.wrap(ScriptedVector(2), 2, seed=0), pm.Payoff(2))
        pm.record_results(pm.wrap(ScriptedVector(2), 2, seed=0), pm.Payoff(2), agents=1)

    def test_rewards_of_another_shape_raise(self):
        class Scalar(ScriptedVector):
            def step(self, actions):
                observations, rewards, *rest = super().step(actions)
                return observations, rewards[:1], *rest

        env = pm.record_results(pm.wrap(Scalar(2), 2, seed=0), Log())
        env.reset()
        with pytest.raises(ValueError, match=r"rewards must have shape \(2,\), got \(1,\)"):
            env.step(0)

    def test_private_attributes_are_not_forwarded(self):
        env = pm.record_results(pm.wrap(ScriptedVector(2), 2, seed=0), Log())
        with pytest.raises(AttributeError, match="RecordResultsVector has no attribute '_secret'"):
            _ = env._secret

    def test_tensors_in_terminal_infos_are_copied(self):
        torch = pytest.importorskip("torch")
        live, seen = torch.zeros(2), []

        class Reuses(ScriptedVector):
            def step(self, actions):
                live[:] = float(self.time)
                return *super().step(actions)[:4], {"energy": live}

        def score(returns, infos):
            seen.append({agent: float(info["energy"]) for agent, info in infos.items()})
            return returns

        vector = Reuses(2, [[0], [1]])
        env = pm.record_results(pm.wrap(vector, pm.Fixed(0), agents=2), Log(), score=score)
        env.reset()
        env.step(0), env.step(0)
        assert seen == [{"agent_0": 0.0, "agent_1": 1.0}]

    def test_reset_mask_of_another_shape_raises(self):
        env = pm.record_results(pm.wrap(ScriptedVector(2), 2, seed=0), Log())
        env.reset()
        with pytest.raises(ValueError, match=r"options\['reset_mask'\] must have shape \(2,\)"):
            env.reset(options={"reset_mask": np.array([True])})


class ByRow2(ByRow):
    """The same for two environments of two seats."""

    def assign(self, draw):
        return np.repeat(super().assign(draw), 2, axis=1)


class Log:
    """A sink that pickles."""

    def __init__(self):
        self.episodes = []

    def record(self, episode):
        self.episodes.append(episode)
