"""`LearnerEnv`: turns, rewards, seats, ends of episodes, masks, seeds, and replacing policies during training."""
# ruff: noqa: NPY002  # opponents draw from the global generator

import copy
import gc
import pickle
import random
import weakref

import cloudpickle
import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import FlattenObservation, RecordEpisodeStatistics, TimeLimit
from mpe2 import simple_spread_v3, simple_tag_v3
from pettingzoo.classic import connect_four_v3, rps_v2, tictactoe_v3
from pettingzoo.utils import aec_to_parallel, parallel_to_aec, turn_based_aec_to_parallel
from pettingzoo.utils.wrappers import MultiEpisodeEnv
from supersuit import frame_skip_v0

import pz_policymap as pm
from tests.learner_envs import ScriptedAEC, Survival
from tests.stub_envs import StubAEC, StubParallel

SEATED = pm.Focal(pm.Fixed(0), pm.Fixed(1))
FIRST = pm.Focal(pm.Fixed(0), pm.Fixed(1), rotate=False)


def always(action):
    return lambda observation, agent, info: action


def legal(observation, agent, info):
    """Chooses a legal action by NumPy's global generator."""
    return int(np.random.choice(np.flatnonzero(observation["action_mask"])))


def anything(env):
    """Returns a policy that samples from the environment's action spaces."""
    return lambda observation, agent, info: env.action_space(agent).sample()


def learner_env(env, policies=None, mapping=SEATED, record=None, play_out=True, isolate=True, **settings):
    settings = {"resample_every": 1, "seed": None, **settings}
    tagged = pm.wrap(env, mapping, **settings)
    if record is not None:
        tagged = pm.record_results(tagged, record)
    return pm.LearnerEnv(
        tagged, {1: always(0)} if policies is None else policies, play_out=play_out, isolate_randomness=isolate
    )


def scripted(*scripts, seat="a", truncates=False, **settings):
    env = ScriptedAEC(scripts, truncates=truncates)
    return learner_env(env, mapping=pm.Fixed({"a": int(seat != "a"), "b": int(seat != "b")}), **settings), env


def play(env, act=None, **first):
    """Plays one episode; returns the learner's observations, rewards, ends and last info."""
    observation, info = env.reset(**first)
    observations, rewards = [observation], []
    while True:
        action = env.action_space.sample(env.action_masks().astype(np.int8)) if act is None else act(observation)
        observation, reward, terminated, truncated, info = env.step(action)
        observations.append(observation)
        rewards.append(reward)
        if terminated or truncated:
            return observations, rewards, (terminated, truncated), info


# Turns and rewards


def test_opponents_move_between_the_learners_turns():
    turns = [("b", {}, ()), ("a", {}, ()), ("b", {}, ()), ("b", {}, ()), ("a", {}, ("a", "b"))]
    env, inner = scripted(turns, policies={1: always(7)})
    observations, _, ended, _ = play(env, act=lambda seen: seen)
    assert inner.log == ["reset", ("b", 7), ("a", 1), ("b", 7), ("b", 7), ("a", 4)]
    assert observations == [1, 4, 5]
    assert ended == (True, False)


def test_rewards_before_and_between_turns_are_summed():
    turns = [
        ("b", {"a": 1.0, "b": 100.0}, ()),
        ("b", {"a": 2.0}, ()),
        ("a", {"a": 4.0, "b": 100.0}, ()),
        ("b", {"a": 8.0}, ()),
        ("b", {"a": 16.0}, ()),
        ("a", {"a": 32.0}, ()),
        ("b", {"a": 64.0}, ("a", "b")),
    ]
    env, _ = scripted(turns)
    assert play(env, act=always_acts(0))[1] == [1 + 2 + 4 + 8 + 16, 32 + 64]


def always_acts(action):
    return lambda observation: action


def test_rewards_of_an_episode_without_a_turn_are_dropped():
    lost, won = [("b", {"a": 50.0}, ("a", "b"))], [("a", {"a": 1.0}, ("a", "b"))]
    env, inner = scripted(lost, won, lost)
    assert play(env, act=always_acts(3))[1] == [1.0]
    assert inner.log == ["reset", ("b", 0), "reset", ("a", 3)]


def test_episode_without_a_turn_is_followed_by_the_next_with_equal_options():
    over, real = [("b", {}, ("a", "b"))], [("a", {}, ("a", "b"))]
    episodes = []
    env, inner = scripted([], over, over, real, record=episodes.append)
    observation, _ = env.reset(seed=5, options={"level": 3})
    assert inner.resets == 4
    assert inner.options == [{"level": 3}] * 4
    assert inner.seeds == [5, None, None, None]  # the seed would bring the same episode back
    assert observation == 0
    assert [episode.lengths for episode in episodes if any(episode.lengths)] == [(0, 1), (0, 1)]


def test_learner_that_dies_before_its_turn_waits_for_the_end_if_played_out():
    dies, real = [("b", {}, ("a",)), ("b", {}, ()), ("b", {}, ("b",))], [("a", {}, ("a", "b"))]
    for play_out, moves in ((True, 3), (False, 1)):
        env, inner = scripted(dies, real, play_out=play_out)
        env.reset()
        assert inner.log == ["reset", *[("b", 0)] * moves, "reset"]


def test_environment_that_never_gives_a_turn_raises():
    env, inner = scripted([("b", {}, ("a", "b"))])
    with pytest.raises(ValueError, match="must give the learner a turn, got 1000 episodes in a row"):
        env.reset()
    assert inner.resets == 1000
    with pytest.raises(ResetNeeded):
        env.step(0)


@pytest.mark.parametrize("truncates", [True, False])
def test_end_is_reported_as_terminated_or_truncated(truncates):
    class Truncating(StubParallel):
        def step(self, actions):
            observations, rewards, terminations, truncations, infos = super().step(actions)
            ends = (truncations, terminations) if truncates else (terminations, truncations)
            return observations, rewards, *ends, infos

    by_turns, _ = scripted([("a", {}, ()), ("b", {}, ("a", "b"))], truncates=truncates)
    for env in (by_turns, learner_env(Truncating(), mapping=FIRST)):
        assert play(env, act=always_acts(0))[2] == (not truncates, truncates)


def test_parallel_agents_move_at_once():
    inner = StubParallel(live=[("a", "b"), ("a", "b"), ()])
    env = learner_env(inner, {1: always(1)}, mapping=FIRST)
    assert play(env, act=always_acts(0)) == ([0, 1, 2], [1.0, 1.0], (True, False), {"policy_id": 0})


def test_learner_that_joins_late_gets_its_earlier_rewards():
    env = learner_env(Survival(3, late=[1]), mapping=pm.Fixed({"player_0": 1, "player_1": 0, "player_2": 1}))
    for seed in range(20):
        observations, rewards, _, _ = play(env, seed=seed)
        assert observations[0].tolist() == [1, 3]
        assert len(observations) == len(rewards) + 1
    stub = StubParallel(live=[("a",), ("a",), ("a", "b"), ("a", "b"), ()])  # it pays new agents, too
    env = learner_env(stub, mapping=pm.Fixed({"a": 1, "b": 0}))
    assert play(env, act=always_acts(0)) == ([2, 3, 4], [2.0, 1.0], (True, False), {"policy_id": 0})


def test_rewards_after_the_learners_end_count_if_played_out():
    class PaysTheDead(StubParallel):
        def step(self, actions):
            observations, rewards, terminations, truncations, infos = super().step(actions)
            extra = self.time > 1
            return (
                {**observations, **({"a": 77} if extra else {})},
                {**rewards, "a": 1.0},
                {**terminations, **({"a": False} if extra else {})},
                truncations,
                infos,
            )

    script = [("a", "b"), ("b",), ("b",), ()]
    for play_out, paid in ((True, [3.0]), (False, [1.0])):
        env = learner_env(PaysTheDead(live=script), mapping=FIRST, play_out=play_out)
        assert play(env, act=always_acts(0))[:3] == ([0, 1], paid, (True, False))


def test_agent_removed_without_flags_has_terminated():
    class Silent(StubParallel):
        def step(self, actions):
            observations, rewards, _, truncations, infos = super().step(actions)
            return observations, rewards, dict.fromkeys(observations, False), truncations, infos

    env = learner_env(Silent(live=[("a", "b"), ("b",), ()]), mapping=FIRST)
    assert play(env, act=always_acts(0))[2] == (True, False)


def test_info_modified_by_a_trainer_does_not_reach_the_next_step():
    class Gone(StubParallel):
        def step(self, actions):
            outcome = super().step(actions)
            return tuple({agent: value for agent, value in part.items() if agent in self.agents} for part in outcome)

    env = learner_env(Gone(live=[("a", "b"), ("b",), ()]), mapping=FIRST)
    observation, info = env.reset()
    info["episode"] = "a trainer writes this"
    assert env.step(0) == (observation, 0.0, True, False, {"policy_id": 0})


# Seats


def test_agent_follows_the_learner_from_seat_to_seat():
    env = learner_env(Survival(3), seed=4)
    seats = []
    for _ in range(30):
        observation, info = env.reset()
        assert info == {"policy_id": 0}
        assert env.agent == f"player_{int(observation[0])}"
        assert env.policy_ids == {agent: int(agent != env.agent) for agent in env.env.possible_agents}
        seats.append(env.agent)
    assert set(seats) == set(env.env.possible_agents)


@pytest.mark.parametrize(
    ("mapping", "held"),
    [
        (pm.Uniform(2), "controls [023]"),
        (pm.Fixed(0), "controls 3"),
        (pm.Fixed(1), "controls 0"),
        (2, "controls [023]"),
        (pm.Focal(pm.Uniform([0, 1]), pm.Fixed(1)), "controls 0"),
    ],
)
def test_learner_without_exactly_one_seat_is_refused_with_a_remedy(mapping, held):
    with pytest.raises(ValueError, match=rf"exactly one seat, and policy 0 {held} in .*Focal\(Fixed\(0\), opponents"):
        learner_env(Survival(3), mapping=mapping)


def acting(agents, number):
    """Returns a policy that notes the agents that it acts for, and always does the same."""

    def act(observation, agent, info):
        agents.append(agent)
        return number

    return act


@pytest.mark.parametrize("form", ["parallel", "aec"])
def test_learner_in_several_seats_learns_in_one_and_its_policy_controls_the_others(form):
    copies, inner, recorded, seats = [], Survival(3), [], []
    made = inner if form == "parallel" else parallel_to_aec(inner)
    mapping = pm.Fixed({"player_0": 0, "player_1": 1, "player_2": 0})
    env = learner_env(made, {0: acting(copies, 7), 1: always(1)}, mapping=mapping, record=recorded.append, seed=0)
    for _ in range(200):
        copies.clear()
        inner.seen_actions.clear()
        play(env, lambda observation: 3)
        seats.append(env.agent)
        assert set(copies) <= {"player_0", "player_2"} - {env.agent}
        assert all(actions.get(env.agent, 3) == 3 for actions in inner.seen_actions)
    assert 70 < seats.count("player_0") < 130  # a fair coin: within four standard deviations
    assert set(seats) == {"player_0", "player_2"}
    assert [episode.policies for episode in recorded] == [(0, 1, 0)] * 200


def test_seat_of_a_learner_that_meets_itself_does_not_depend_on_the_draw():
    seats = []
    tagged = pm.wrap(rps_v2.parallel_env(max_cycles=1), pm.Focal(pm.Fixed(0), pm.Uniform(2)), resample_every=1, seed=0)
    env = pm.LearnerEnv(tagged, [always(0), always(0)])
    for _ in range(400):
        env.reset()
        if set(env.policy_ids.values()) == {0}:
            seats.append(env.agent)
    assert 150 < len(seats) < 250
    assert 70 < seats.count("player_0") / len(seats) * 200 < 130


def test_seat_of_a_learner_that_meets_itself_is_resumed():
    env, resumed = (learner_env(Survival(4), {0: always(0)}, mapping=pm.Fixed(0), seed=5) for _ in range(2))
    for _ in range(3):
        play(env)
    resumed.load_state_dict(env.state_dict())
    seats = []
    for each in (env, resumed):
        seats.append([])
        for _ in range(20):
            each.reset()
            seats[-1].append(each.agent)
    assert seats[0] == seats[1]
    assert len(set(seats[0])) == 4


def test_policy_of_a_learner_that_meets_itself_is_replaced_between_episodes():
    inner = Survival(2)
    env = learner_env(inner, {0: always(1)}, mapping=pm.Fixed(0))
    for policies, number in (({0: always(1)}, 1), ([always(2)], 2)):
        env.set_policies(policies)
        inner.seen_actions.clear()
        play(env, lambda observation: 0)
        assert sorted({action for actions in inner.seen_actions for action in actions.values()}) == [0, number]
    env.set_policies({1: always(0)})
    with pytest.raises(ValueError, match=r"exactly one seat, and policy 0 controls 2 .* or give policies\[0\]"):
        env.reset()
    with pytest.raises(ValueError, match="policy 0 controls 2"):
        env.set_mapping(pm.Fixed(0))


class Crowd(StubParallel):
    """Agent "c" joins after the second step; `given` holds its action of each step."""

    def __init__(self):
        super().__init__(live=[("a",), ("a",), ("a", "c"), ("a", "c"), ()], possible_agents=["a"])
        self.given = []

    def step(self, actions):
        self.given.append(actions.get("c"))
        return super().step(actions)


@pytest.mark.parametrize("given", [False, True])
def test_learner_in_a_seat_that_joins_late_needs_a_policy_for_it(given):
    inner = Crowd()
    env = learner_env(inner, {0: always(1)} if given else {}, mapping=pm.Fixed(0))
    env.reset()
    assert env.agent == "a"
    if given:
        while not env.step(0)[2]:
            pass
        assert inner.given == [None, None, 1, 1]
    else:
        env.step(0)
        with pytest.raises(ValueError, match="policy 0 controls 2"):
            env.step(0)


def test_forced_matchup_moves_the_learner_for_one_episode():
    env = learner_env(Survival(3), mapping=FIRST)
    env.reset(options={"policy_ids": {"player_0": 1, "player_2": 0}})
    assert env.agent == "player_2"
    env.reset()
    assert env.agent == "player_0"
    with pytest.raises(ValueError, match="policy 0 controls 2 in .*Focal"):
        env.reset(options={"policy_ids": {"player_2": 0}})
    with pytest.raises(ResetNeeded):
        env.step(0)  # the episode before is over, too


def test_learner_may_be_any_policy_id():
    tagged = pm.wrap(Survival(3), pm.Focal(pm.Fixed(5), pm.Fixed(1)))
    env = pm.LearnerEnv(tagged, [None, always(0)], learner=np.int64(5))
    env.reset()
    assert env.policy_ids[env.agent] == env.learner == 5


def test_unequal_spaces_of_possible_seats_are_refused_at_construction():
    def env(mapping):
        return learner_env(simple_tag_v3.parallel_env(max_cycles=3), mapping=mapping)

    with pytest.raises(ValueError, match="'adversary_0' has observations .* agent 'agent_0' has observations"):
        env(SEATED)
    roles = pm.Roles({"adversary": pm.Focal(pm.Fixed(0), pm.Fixed(1)), "agent": pm.Fixed(1)})
    moving = env(roles)
    assert moving.observation_space == simple_tag_v3.parallel_env().observation_space("adversary_0")
    seats = [(moving.reset(), moving.agent)[1] for _ in range(30)]
    assert set(seats) == {"adversary_0", "adversary_1", "adversary_2"}


def test_later_seat_with_other_spaces_is_refused_and_the_old_mapping_stays():
    names = ["adversary_0", "adversary_1", "adversary_2", "agent_0"]
    prey = pm.Fixed({name: int(name != "agent_0") for name in names})
    env = learner_env(simple_tag_v3.parallel_env(max_cycles=3), mapping=prey)
    with pytest.raises(ValueError, match="equal spaces"):
        env.set_mapping(pm.Fixed({name: int(name != "adversary_1") for name in names}))
    with pytest.raises(ValueError, match="Focal"):
        env.set_mapping(pm.Fixed(1))
    assert env.env.assigner.mapping == prey
    with pytest.raises(ValueError, match="equal spaces"):
        env.reset(options={"policy_ids": {"agent_0": 1, "adversary_1": 0}})
    env.reset()
    assert env.agent == "agent_0"


def test_seats_are_searched_in_the_draws_of_a_pinned_environment():
    numbers = []

    def seats(agents, draw):
        numbers.append(int(draw.rng.integers(2**60)))
        return {agent: int(agent != agents[0]) for agent in agents}

    env = learner_env(Survival(3), mapping=pm.FromFunction(seats), seed=6, env_index=3, resample_every=4)
    tried, numbers = numbers, []
    for _ in range(9):
        env.reset()
    assert numbers == tried[:3]
    with pytest.raises(ValueError, match="policy must hold every agent, got no policy for 'player_1'"):
        env.set_mapping(pm.Fixed({"player_0": 0}))


def test_weights_callable_is_called_once_at_construction():
    asked = []

    def weights():
        asked.append(1)
        return [0, 1]

    learner_env(Survival(3), mapping=pm.Focal(pm.Fixed(0), pm.Weighted(weights)))
    assert len(asked) == 1
    with pytest.raises(ValueError, match="failed at the draw of environments 0 to 0.*ZeroDivisionError"):
        learner_env(Survival(3), mapping=pm.Focal(pm.Fixed(0), pm.Weighted(lambda: [1 / 0])))


# The end of the episode, and its record


@pytest.mark.parametrize("api", ["parallel", "aec"])
def test_fair_game_is_recorded_as_fair_if_played_out(api):
    # Results recorded only at the learner's end would omit the episodes in which the others continued.
    rates = {}
    for play_out in (True, False):
        payoff = pm.Payoff(2, prior=0.0)
        inner = Survival(4) if api == "parallel" else parallel_to_aec(Survival(4))
        env = learner_env(inner, record=payoff, play_out=play_out)
        for episode in range(200):
            play(env, act=always_acts(0), **({"seed": 0} if episode == 0 else {}))
        rates[play_out] = payoff.win_rates[0, 1]
        if play_out:
            assert payoff.games[0, 1] == 200
    assert rates[True] == pytest.approx(0.5, abs=0.14)  # four standard errors
    assert rates[False] == 1.0  # of four, the first two beat more seats than they lose to


def test_opponents_finish_the_episode_after_the_learners_end():
    inner = Survival(4)
    env = learner_env(inner, {1: always(1)}, play_out=True)
    for seed in range(10):
        inner.seen_actions.clear()
        play(env, act=always_acts(9), seed=seed)
        assert not inner.agents
        for actions in inner.seen_actions[1:]:
            assert all(action == (9 if agent == env.agent else 1) for agent, action in actions.items())
        assert len(inner.seen_actions) == 4


def test_learner_that_respawns_ends_its_episode():
    inner = StubParallel(live=[("a", "b"), ("b",), ("a", "b"), ("a", "b"), ()])
    env = learner_env(inner, mapping=FIRST)
    assert play(env, act=always_acts(0))[1] == [1.0 + 1.0]
    assert inner.time == 2
    env.reset()


CASES = {
    "connect four": (connect_four_v3.env, legal),
    "tic tac toe": (tictactoe_v3.env, legal),
    "rock paper scissors": (lambda: rps_v2.env(max_cycles=4), always(1)),
    "rps parallel": (lambda: rps_v2.parallel_env(max_cycles=4), always(1)),
    "spread": (lambda: simple_spread_v3.env(max_cycles=4), always(2)),
    "spread parallel": (lambda: simple_spread_v3.parallel_env(max_cycles=4), always(2)),
    "survival": (Survival, always(2)),
    "survival by turns": (lambda: parallel_to_aec(Survival()), always(2)),
    "stub": (lambda: StubAEC({"a": 2, "b": 3}), always(1)),
    "stub parallel": (StubParallel, always(1)),
}


@pytest.mark.parametrize("name", CASES)
def test_learner_return_equals_the_recorded_return_of_its_seat(name):
    make, opponent = CASES[name]
    episodes = []
    env = learner_env(make(), {1: opponent}, record=episodes.append)
    env.action_space.seed(1)
    for episode in range(8):
        _, rewards, _, _ = play(env, **({"seed": 3} if episode == 0 else {}))
        assert len(episodes) == episode + 1
        seat = episodes[-1].agents.index(env.agent)
        assert sum(rewards) == pytest.approx(episodes[-1].returns[seat])
        assert episodes[-1].policies == tuple(env.policy_ids.values())
        assert episodes[-1].lengths[seat] == len(rewards)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", CASES)
def test_gymnasiums_check_passes(name):
    make, opponent = CASES[name]
    check_env(learner_env(make(), {1: opponent}), skip_render_check=True)


def test_illegal_move_ends_the_game_as_the_environment_says():
    episodes = []
    env = learner_env(tictactoe_v3.env(), {1: legal}, mapping=FIRST, record=episodes.append)
    env.reset(seed=0)
    env.step(0)
    observation, reward, terminated, _, _ = env.step(0)
    assert (reward, terminated) == (-1.0, True)
    assert observation.shape == (3, 3, 2)
    assert episodes[0].returns == (-1.0, 0.0)


def test_discrete_observation_in_an_array_becomes_a_number():
    inner = rps_v2.parallel_env(max_cycles=2)
    assert isinstance(inner.reset()[0]["player_0"], np.ndarray)
    observations, _, _, _ = play(learner_env(inner))
    assert all(type(observation) is np.int64 for observation in observations)


def test_episode_interrupted_by_reset_is_not_recorded():
    episodes = []
    env = learner_env(Survival(4), record=episodes.append)
    env.reset(seed=0)
    env.reset()
    assert not episodes


@pytest.mark.parametrize("converted", [aec_to_parallel, turn_based_aec_to_parallel])
def test_policy_wrapper_is_found_through_converters(converted):
    aec = rps_v2.env(max_cycles=3) if converted is aec_to_parallel else tictactoe_v3.env()
    tagged = converted(pm.wrap(aec, FIRST, seed=0))
    env = pm.LearnerEnv(tagged, {1: always(0) if converted is aec_to_parallel else legal_or_zero})
    _, rewards, _, info = play(env)
    assert info["policy_id"] == 0
    assert rewards
    assert pm.find_assigner(env) is tagged.aec_env.assigner


def legal_or_zero(observation, agent, info):
    return legal(observation, agent, info) if observation["action_mask"].any() else 0


def test_wrapper_between_that_resets_by_itself_raises():
    moves = pm.FromFunction(lambda agents, draw: {agents[draw.episode % 2]: 0, agents[1 - draw.episode % 2]: 1})
    env = MultiEpisodeEnv(pm.wrap(rps_v2.env(max_cycles=1), moves, resample_every=1, seed=0), num_episodes=2)
    outside = pm.LearnerEnv(env, {1: always(0)})
    outside.reset()
    with pytest.raises(ValueError, match="within an episode, got policy .: put LearnerEnv inside"):
        outside.step(0)


@pytest.mark.parametrize("make", [simple_spread_v3.env, simple_spread_v3.parallel_env])
def test_wrapper_between_that_loses_tags_is_accepted(make):
    # SuperSuit's frame_skip empties the infos of reset in AEC, and later returns those of other agents.
    env = learner_env(make(max_cycles=8))
    env = pm.LearnerEnv(frame_skip_v0(env.env, 2), {1: always(0)})
    for seed in range(4):
        assert len(play(env, act=always_acts(0), seed=seed)[1]) == 4


def test_gymnasium_wrappers_outside_forward_masks_and_set_policies():
    inner = learner_env(connect_four_v3.env(), {1: legal})
    env = RecordEpisodeStatistics(TimeLimit(FlattenObservation(inner), max_episode_steps=3))
    observation, _ = env.reset(seed=0)
    assert observation.shape == (84,)
    assert env.get_wrapper_attr("action_masks")().tolist() == [True] * 7
    env.get_wrapper_attr("set_policies")({1: from_python})
    for step in range(3):
        *_, terminated, truncated, info = env.step(3)
        assert (terminated, truncated) == (False, step == 2)
    assert info["episode"]["l"] == 3


# Masks


def test_mask_is_removed_from_observation_and_space():
    env = learner_env(connect_four_v3.env(), {1: legal})
    assert env.observation_space == spaces.Box(0, 1, (6, 7, 2), np.int8)
    observation, _ = env.reset(seed=0, options={"policy_ids": {"player_0": 0, "player_1": 1}})
    assert observation.shape == (6, 7, 2)
    assert env.action_masks().tolist() == [True] * 7
    assert env.action_masks().dtype == np.bool_
    for _ in range(3):
        assert not env.step(3)[2]  # three of ours and three of others can fill a column
        board = env.env.unwrapped.board
        assert env.action_masks().tolist() == [board[column] == 0 for column in range(7)]


class Masked(StubParallel):
    """Returns a mask in the info, or in the observation beside one or two other entries."""

    def __init__(self, where, actions=None):
        super().__init__()
        self.where = where
        self.actions = actions or spaces.Discrete(3)
        self.mask = (
            (np.array([1, 0], np.int8), np.array([0, 1, 1], np.int8))
            if isinstance(self.actions, spaces.MultiDiscrete)
            else np.array([0, 1, 1], np.int8)
        )
        if where == "info":
            self.make_infos = lambda time, agents: {agent: {"action_mask": self.mask} for agent in agents}

    def action_space(self, agent):
        return self.actions

    def observation_space(self, agent):
        inner = super().observation_space(agent)
        mask = spaces.MultiBinary(3)
        return {
            "info": inner,
            "none": inner,
            "pair": spaces.Dict(observation=inner, action_mask=mask),
            "three": spaces.Dict(observation=inner, clock=inner, action_mask=mask),
            "dict": spaces.Dict(observation=inner),
        }[self.where]

    def reset(self, seed=None, options=None):
        observations, infos = super().reset(seed, options)
        return {agent: self._masked(seen) for agent, seen in observations.items()}, infos

    def step(self, actions):
        observations, *rest = super().step(actions)
        return {agent: self._masked(seen) for agent, seen in observations.items()}, *rest

    def _masked(self, seen):
        return {
            "info": seen,
            "none": seen,
            "pair": {"observation": seen, "action_mask": self.mask},
            "three": {"observation": seen, "clock": seen, "action_mask": self.mask},
            "dict": {"observation": seen},
        }[self.where]


@pytest.mark.parametrize(
    ("where", "seen", "allowed"),
    [
        ("info", 0, [False, True, True]),
        ("none", 0, [True, True, True]),
        ("pair", 0, [False, True, True]),
        ("three", {"observation": 0, "clock": 0}, [False, True, True]),
        ("dict", {"observation": 0}, [True, True, True]),
    ],
)
def test_mask_is_found_in_observation_or_info(where, seen, allowed):
    env = learner_env(Masked(where))
    observation, info = env.reset()
    assert observation == seen
    assert observation in env.observation_space
    assert env.action_masks().tolist() == allowed
    assert ("action_mask" in info) == (where == "info")


@pytest.mark.parametrize(
    ("actions", "where", "allowed"),
    [
        (spaces.MultiDiscrete([2, 3]), "none", [True] * 5),
        (spaces.MultiBinary(2), "none", [True] * 4),
        (spaces.MultiDiscrete([2, 3]), "info", [True, False, False, True, True]),
    ],
)
def test_mask_of_a_space_with_parts_is_flattened(actions, where, allowed):
    env = learner_env(Masked(where, actions), mapping=FIRST)
    env.reset()
    assert env.action_masks().tolist() == allowed


def test_mask_that_does_not_fit_raises():
    env = learner_env(Masked("none", spaces.Box(-1, 1, (2,), np.float32)))
    with pytest.raises(ResetNeeded, match="action_masks cannot be called before reset"):
        env.action_masks()
    env.reset()
    with pytest.raises(TypeError, match="action_masks needs actions that can be counted, got Box"):
        env.action_masks()
    env = learner_env(Masked("info", spaces.Discrete(4)))
    env.reset()
    with pytest.raises(ValueError, match="action_mask must have 4 entries"):
        env.action_masks()


# Seeds


def history(env, seed):
    """Returns three episodes from a seed, with a deterministic learner."""
    seen = []
    for episode in range(3):
        observations, rewards, _, _ = play(
            env, act=lambda _: int(env.action_masks().argmax()), **({"seed": seed} if episode == 0 else {})
        )
        seen.append((env.agent, [np.asarray(o).tolist() for o in observations], rewards))
    return seen


def from_python(observation, agent, info):
    return random.choice(np.flatnonzero(observation["action_mask"]).tolist())


@pytest.mark.parametrize("source", ["numpy", "python", "spaces"])
def test_seed_determines_seat_and_opponent_actions(source):
    def fresh():
        env = connect_four_v3.env()

        def from_spaces(observation, agent, info):
            return env.action_space(agent).sample(observation["action_mask"])

        return learner_env(env, {1: {"numpy": legal, "python": from_python, "spaces": from_spaces}[source]})

    env = fresh()
    once = history(env, 5)
    np.random.rand(7)
    random.random()
    env.action_space.sample()
    assert history(env, 5) == once
    assert history(fresh(), 5) == once
    assert history(env, 6) != once
    assert len({str(episode) for episode in once}) == 3


def test_isolated_opponents_leave_global_generators_unchanged_even_after_an_error():
    def fails(observation, agent, info):
        random.random()
        np.random.rand()
        raise RuntimeError("no")

    def state():
        return random.getstate(), np.random.get_state()[1].tolist(), np.random.get_state()[2]

    env = learner_env(connect_four_v3.env(), {1: lambda o, a, i: from_python(o, a, i) + 0 * legal(o, a, i)})
    before = state()
    play(env, act=lambda _: int(env.action_masks().argmax()), seed=1)
    assert state() == before
    env = learner_env(Survival(3), {1: fails})
    env.reset()
    with pytest.raises(RuntimeError):
        env.step(0)
    assert state() == before


class Failing:
    """A policy that raises once, at its `number`-th move."""

    def __init__(self, number):
        self.left = number

    def __call__(self, observation, agent, info):
        self.left -= 1
        if self.left == 0:
            raise RuntimeError("no")
        return 0


@pytest.mark.parametrize("number", [1, 2, 3])  # before the learner's first turn, after it, and after its end
def test_step_after_an_opponent_error_raises_until_reset(number):
    turns = [("b", {}, ()), ("a", {"a": 1.0}, ()), ("b", {}, ()), ("a", {"a": 1.0}, ("a",)), ("b", {}, ("b",))]
    env, inner = scripted(turns, policies={1: Failing(number)})
    with pytest.raises(RuntimeError, match="no"):
        play(env, act=always_acts(5))
    with pytest.raises(ResetNeeded, match="or an error"):
        env.step(6)
    inner.log.clear()
    assert play(env, act=always_acts(5))[1] == [1.0, 1.0]
    assert inner.log == ["reset", ("b", 0), ("a", 5), ("b", 0), ("a", 5), ("b", 0)]


def test_step_refused_by_the_environment_needs_a_reset():
    class Refuses(StubParallel):
        def step(self, actions):
            if actions["a"] == 9:
                raise ValueError("9 is not an action")
            return super().step(actions)

    env = learner_env(Refuses(), mapping=FIRST)
    env.reset()
    with pytest.raises(ValueError, match="9 is not an action"):
        env.step(9)
    with pytest.raises(ResetNeeded):
        env.step(0)
    assert play(env, act=always_acts(0))[1] == [1.0, 1.0]


def test_action_space_is_a_copy():
    env = learner_env(Survival(3), mapping=FIRST)
    assert env.action_space == env.env.action_space("player_0")
    assert env.action_space is not env.env.action_space("player_0")


def test_environments_without_a_seed_differ():
    episodes = [history(learner_env(connect_four_v3.env(), {1: legal}), None) for _ in range(2)]
    assert episodes[0] != episodes[1]


def test_pinned_assignments_do_not_depend_on_the_reset_seed():
    env = learner_env(Survival(4), seed=2)
    seats = [(env.reset(seed=9), env.agent)[1] for _ in range(6)]
    other = learner_env(Survival(4), seed=2)
    assert seats == [(other.reset(), other.agent)[1] for _ in range(6)]
    assert len(set(seats)) > 1


# Replacing policies during training


def test_set_policies_applies_from_the_next_reset():
    inner = Survival(4)
    env = learner_env(inner, {1: always(1)}, mapping=FIRST)
    env.reset(seed=0)
    env.set_policies([None, always(2)])
    while not env.step(0)[2]:
        pass
    assert {a for actions in inner.seen_actions for agent, a in actions.items() if agent != "player_0"} == {1}
    inner.seen_actions.clear()
    play(env)
    assert {a for actions in inner.seen_actions for agent, a in actions.items() if agent != "player_0"} == {2}


@pytest.mark.parametrize("replaced", [{1: always(2)}, {2: always(2)}], ids=["replaced", "removed"])
def test_agent_that_joins_after_set_policies_gets_the_old_policy(replaced):
    inner = Crowd()
    mapping = pm.FromFunction(lambda agents, draw: {agent: int(agent != "a") for agent in agents})
    env = learner_env(inner, {1: always(1)}, mapping=mapping)
    env.reset()
    env.step(0)
    env.set_policies(replaced)
    while not env.step(0)[2]:
        pass
    assert inner.given == [None, None, 1, 1]


def test_replaced_policies_are_released():
    class Predicts:
        def predict(self, observation):
            return np.zeros(len(observation), int), None

    policies = {1: Predicts(), 2: always(0)}
    env = learner_env(Survival(3), dict(policies))
    env.reset()
    held = weakref.ref(policies.pop(1))
    assert held() is not None
    env.set_policies({2: always(0)})
    env.set_mapping(pm.Focal(pm.Fixed(0), pm.Fixed(2)))
    env.reset()
    gc.collect()
    assert held() is None


def test_dict_of_policies_that_grows_is_read_at_the_next_reset():
    policies = {1: always(0)}
    env = learner_env(Survival(3), policies)
    env.set_mapping(pm.Focal(pm.Fixed(0), pm.Fixed(2)))
    with pytest.raises(KeyError, match=r"policies must hold every policy that acts, got none for policy 2 in \[1\]"):
        env.reset()
    policies[2] = always(0)
    env.reset()
    assert set(env.policy_ids.values()) == {0, 2}


def test_set_mapping_applies_from_the_next_draw_or_reset():
    env = learner_env(Survival(3), {1: always(0), 2: always(0)}, resample_every=2)
    seen = []
    for now in (None, False, None, True, None):
        if now is not None:
            env.set_mapping(pm.Focal(pm.Fixed(0), pm.Fixed(1 if now else 2)), now=now)
        env.reset()
        seen.append(max(env.policy_ids.values()))
    assert seen == [1, 1, 2, 1, 1]


def make_vectorised():
    return learner_env(Survival(3), {1: always(1)}, mapping=FIRST)


def plays_two(observation, agent, info):
    return 2


@pytest.mark.parametrize("vectorise", [gymnasium.vector.SyncVectorEnv, gymnasium.vector.AsyncVectorEnv])
def test_gymnasium_vector_environments_forward_set_policies_and_set_mapping(vectorise):
    envs = vectorise([make_vectorised, make_vectorised])
    try:
        envs.reset(seed=0)
        assert [set(ids.values()) for ids in envs.call("policy_ids")] == [{0, 1}] * 2
        envs.call("set_policies", {2: plays_two})
        envs.call("set_mapping", pm.Focal(pm.Fixed(0), pm.Fixed(2)), now=True)
        envs.reset()
        assert [set(ids.values()) for ids in envs.call("policy_ids")] == [{0, 2}] * 2
    finally:
        envs.close()


# The rest


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e)), cloudpickle.loads])
def test_copy_continues_as_the_original(copied):
    env = learner_env(connect_four_v3.env(), {1: legal})
    history(env, 3)
    twin = copied(cloudpickle.dumps(env) if copied is cloudpickle.loads else env)
    assert history(twin, 4) == history(env, 4)


def pinned(seed):
    """Returns an environment with two opponents, which resamples every other episode."""
    mapping = pm.Focal(pm.Fixed(0), pm.Uniform([1, 2, 3, 4]))
    return learner_env(Survival(3), dict.fromkeys(range(1, 5), always(0)), mapping, resample_every=2, seed=seed)


@pytest.mark.parametrize("running", [False, True])
def test_saved_environment_resumes_the_same_opponents(tmp_path, running):
    env = pinned(7)
    for _ in range(3):
        play(env)
    if running:
        env.reset()  # this episode will be repeated
    pm.save(tmp_path / "run.npz", env=env)
    rest = [env.policy_ids] if running else []
    for _ in range(6 - len(rest)):
        env.reset()
        rest.append(env.policy_ids)
    resumed = pinned(7)
    resumed.reset()
    resumed.load_state_dict(pm.load(tmp_path / "run.npz")["env"])
    with pytest.raises(ResetNeeded):
        resumed.step(0)
    seen = []
    for _ in range(6):
        resumed.reset()
        seen.append(resumed.policy_ids)
    assert seen == rest
    assert len({str(ids) for ids in seen}) > 1


def test_saved_environment_does_not_repeat_an_episode_that_the_learner_has_finished():
    env, _ = scripted([("a", {}, ["a"]), ("b", {}, ["b"])], play_out=False)
    play(env, lambda observation: 0)
    assert env.state_dict()["episode"] == 0
    env.reset()
    assert env.state_dict()["episode"] == 0


def test_state_that_does_not_fit_leaves_the_environment_playing():
    env = pinned(7)
    env.reset()
    with pytest.raises(ValueError, match="state"):
        env.load_state_dict({"version": 99})
    env.step(0)


def test_policies_in_use_are_those_of_the_draw_and_of_the_episode():
    env = learner_env(Survival(3), {1: always(0), 2: always(0)}, mapping=FIRST)
    names = env.env.possible_agents
    env.reset(options={"policy_ids": {names[0]: 0, names[1]: 2}})
    assert env.policies_in_use == {0, 1, 2}


@pytest.mark.parametrize("make", [StubAEC, StubParallel])
def test_repr_names_environment_and_learner(make):
    tagged = pm.wrap(make(), pm.Focal(pm.Fixed(1), pm.Fixed(0)))
    env = pm.LearnerEnv(tagged, [always(0)], learner=1)
    inner = str(tagged) if str(tagged).startswith("<") else f"<{tagged}>"
    assert repr(env) == str(env) == f"<LearnerEnv{inner}, learner=1>"


def test_copy_made_mid_episode_finishes_it_as_the_original():
    env = learner_env(Survival(4), {1: lambda *given: np.random.randint(100)})
    env.reset(seed=2)
    twin = copy.deepcopy(env)
    logs = []
    for one in (env, twin):
        outcomes = [one.step(0)]
        while not outcomes[-1][2]:
            outcomes.append(one.step(0))
        logs.append(([str(outcome) for outcome in outcomes], str(one.env.unwrapped.seen_actions)))
    assert logs[0] == logs[1]


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"env": 3}, TypeError, "env must be a PettingZoo AECEnv or ParallelEnv, got 3"),
        ({"env": Survival()}, ValueError, "env has no policy wrapper around or inside it"),
        ({"env": pm.wrap(StubParallel(possible_agents=None), FIRST)}, ValueError, "env must have possible_agents"),
        ({"learner": -1}, ValueError, "learner must be from 0"),
        ({"learner": 0.0}, TypeError, "learner must be an integer, got 0.0"),
        ({"isolate_randomness": 1}, TypeError, "isolate_randomness must be True or False, got 1"),
        ({"play_out": "no"}, TypeError, "play_out must be True or False, got 'no'"),
        ({"policies": 5}, TypeError, "policies must be a dict from policy id to policy, or a sequence, got 5"),
        ({"policies": "ab"}, TypeError, "policies must be a dict"),
    ],
)
def test_bad_argument_is_named(arguments, error, match):
    given = {"env": pm.wrap(Survival(), SEATED), "policies": [None, always(0)], **arguments}
    with pytest.raises(error, match=match):
        pm.LearnerEnv(**given)


def test_opponent_that_is_not_a_policy_raises_at_construction():
    with pytest.raises(TypeError, match=r"policies\[1\] must be a callable .*, got 'rock'"):
        learner_env(Survival(), {1: "rock"})
    with pytest.raises(TypeError, match="policies must be"):
        learner_env(Survival(3)).set_policies(None)


def test_attributes_before_reset_and_steps_after_the_end_raise():
    env = learner_env(Survival(3))
    for name in ("agent", "policy_ids"):
        with pytest.raises(AttributeError, match=f"{name} cannot be accessed before reset"):
            getattr(env, name)
    with pytest.raises(ResetNeeded, match="step cannot be called before reset"):
        env.step(0)
    play(env, act=always_acts(0))
    with pytest.raises(ResetNeeded, match="nor after the end of an episode"):
        env.step(0)


class Hides(StubParallel):
    """Returns no observation of agent "a" in its first `steps` observations."""

    def __init__(self, steps):
        super().__init__(live=[("a", "b")] * 5 + [()])
        self.left = steps

    def _hidden(self, observations):
        self.left -= 1
        return {agent: value for agent, value in observations.items() if agent != "a" or self.left < 0}

    def reset(self, seed=None, options=None):
        observations, infos = super().reset(seed, options)
        return self._hidden(observations), infos

    def step(self, actions):
        observations, *rest = super().step(actions)
        return self._hidden(observations), *rest


def test_learner_without_an_observation_has_its_first_turn_later():
    env = learner_env(Hides(2), mapping=FIRST)
    env.reset()
    assert env.env.unwrapped.time == 2


def test_agents_without_any_observation_raise():
    class Blind(StubParallel):
        def reset(self, seed=None, options=None):
            return {}, super().reset(seed, options)[1]

    with pytest.raises(RuntimeError, match=r"env must return an observation of at least one of \['a', 'b'\], got none"):
        learner_env(Blind(), mapping=FIRST).reset()


def test_learner_that_is_never_observed_raises():
    with pytest.raises(ValueError, match="env must give the learner a turn"):
        learner_env(Hides(10**9), mapping=FIRST).reset()


def test_agent_that_joins_mid_episode_is_controlled_by_its_policy():
    class Crowd(StubParallel):
        def step(self, actions):
            assert list(actions) == self.agents
            return super().step(actions)

    script = [("a",), ("a", "c"), ("a", "c"), ()]
    mapping = pm.FromFunction(lambda agents, draw: {agent: int(agent != "a") for agent in agents})
    env = learner_env(Crowd(live=script, possible_agents=["a"]), mapping=mapping)
    assert play(env, act=always_acts(0))[1] == [1.0, 1.0, 1.0]
    two = pm.FromFunction(lambda agents, draw: dict.fromkeys(agents, 0))
    env = learner_env(Crowd(live=script, possible_agents=["a"]), mapping=two)
    env.reset()
    with pytest.raises(ValueError, match="policy 0 controls 2"):
        play(env, act=always_acts(0))


def test_render_and_close_reach_the_environment():
    env = learner_env(connect_four_v3.env(render_mode="rgb_array"), {1: legal})
    env.reset()
    assert env.render_mode == "rgb_array"
    assert env.metadata["name"] == "connect_four_v3"
    assert env.render().shape[2] == 3
    env.close()
