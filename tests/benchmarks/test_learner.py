"""Costs of `LearnerEnv` and of recorders, against loops written by hand."""

import itertools
import random
import statistics
import time

import numpy as np
import pytest

import pz_policymap as pm

pettingzoo = pytest.importorskip("pettingzoo")

FIRST = pm.Focal(pm.Fixed(0), pm.Fixed(1), rotate=False)
SEATED = pm.Focal(pm.Fixed(0), pm.Fixed(1))
GAMES = {  # with target and tolerance of a learner's step, of one over a recorder, and of a recorded turn
    "tictactoe": ("pettingzoo.classic.tictactoe.tictactoe", (2.0, 3.0), (2.4, 3.6), (1.35, 2.0)),
    "connect_four": ("pettingzoo.classic.connect_four.connect_four", (1.5, 2.2), (1.8, 2.7), (1.2, 1.8)),
}


class ByHand:
    """A learner in the first seat and one opponent, written by hand for a two-player game."""

    def __init__(self, env, opponent):
        self.env, self.opponent = env, opponent

    def reset(self):
        self.env.reset()
        self.me = self.env.agents[0]
        return self.env.last()[0]

    def step(self, action):
        env, me = self.env, self.me
        env.step(action)
        while True:
            observation, reward, terminated, truncated, info = env.last()
            agent = env.agent_selection
            if terminated or truncated:
                return env.observe(me), env._cumulative_rewards[me], terminated, truncated, info
            if agent == me:
                return observation, reward, terminated, truncated, info
            env.step(self.opponent(observation, agent, info))


def last_legal(observation, agent, info):
    return int(np.flatnonzero(observation["action_mask"])[-1])


def legal(mask, rng):
    return rng.choice([action for action, allowed in enumerate(mask) if allowed])


def timed(function, *arguments):
    start = time.process_time()
    result = function(*arguments)
    return time.process_time() - start, result


def step_times(env, game):
    """Returns the times of the learner's steps in one game, except for the last."""
    rng, times, over = random.Random(game), [], False
    observation = env.reset() if isinstance(env, ByHand) else env.reset()[0]
    while not over:
        mask = observation["action_mask"] if isinstance(env, ByHand) else env.action_masks()
        taken, (observation, _, terminated, truncated, _) = timed(env.step, legal(mask, rng))
        over = terminated or truncated
        times.append(taken)
    return times[:-1]


def turn_times(env, game):
    """Returns the times of the turns in one game, except for the last and those of dead agents."""
    rng, times = random.Random(game), []
    env.reset()
    while True:
        looked, (observation, _, terminated, truncated, _) = timed(env.last)
        if terminated or truncated:
            return times[:-1]
        moved, _ = timed(env.step, legal(observation["action_mask"], rng))
        times.append(looked + moved)


def typical(times_of, environments, games):
    """Returns the median of each environment's times; all play the same games, in turns."""
    times = [[] for _ in environments]
    for game in range(games):
        for env, own in zip(environments, times, strict=True):
            own.extend(times_of(env, game))
    return [statistics.median(own) for own in times]


def raw(game):
    return pytest.importorskip(GAMES[game][0], reason="needs pettingzoo[classic]").raw_env()


def tagged(game):
    return pm.wrap(raw(game), FIRST, resample_every=1, seed=0)


@pytest.mark.parametrize("game", GAMES)
def test_learner_step_against_a_loop_by_hand(report, game):
    opponents = {1: last_legal}
    by_hand, plain, over_recorder = typical(
        step_times,
        [
            ByHand(raw(game), last_legal),
            pm.LearnerEnv(tagged(game), opponents),
            pm.LearnerEnv(pm.record_results(tagged(game), pm.Payoff(2)), opponents),
        ],
        games=150,
    )
    _, of_step, of_recorded, _ = GAMES[game]
    theirs = "a hand-written loop, same opponent"
    report(f"LearnerEnv.step, {game}", theirs, plain / by_hand, *of_step)
    report(f"LearnerEnv.step over a recorder, {game}", theirs, over_recorder / by_hand, *of_recorded)


@pytest.mark.parametrize("game", GAMES)
def test_recorded_turn_against_a_wrapped_turn(report, game):
    environments = [tagged(game), pm.record_results(tagged(game), pm.Payoff(2))]
    wrapped, recorded = typical(turn_times, environments, games=100)
    report(f"a recorded AEC turn, {game}", "the wrapped turn", recorded / wrapped, *GAMES[game][3])


@pytest.mark.parametrize("name", ["mpe2.simple_spread_v3", "pettingzoo.butterfly.pistonball_v6"])
def test_recorded_parallel_step_against_a_wrapped_step(report, name):
    bare = pytest.importorskip(name).parallel_env(max_cycles=10**9)
    env = pm.record_results(pm.wrap(bare, 8, seed=0), pm.Payoff(8))
    env.reset(seed=0)
    inner, inside, own = env.env.step, [], []

    def timed_step(actions):
        taken, outcome = timed(inner, actions)
        inside.append(taken)
        return outcome

    env.env.step = timed_step  # both share every step, so that differences between steps do not count
    actions = {agent: env.action_space(agent).sample() for agent in env.agents}
    own = [timed(env.step, actions)[0] for _ in range(200)]
    what = f"a recorded parallel step, {name.split('.')[-1]}"
    report(what, "the wrapped step", statistics.median(own) / statistics.median(inside), 1.05, 1.3)


class Network:
    """Two hidden layers of 256 units on the CPU."""

    def __init__(self, num_inputs, num_actions):
        self.torch = torch = pytest.importorskip("torch")
        torch.set_num_threads(1)
        sizes = (num_inputs, 256, 256)
        hidden = [layer for a, b in itertools.pairwise(sizes) for layer in (torch.nn.Linear(a, b), torch.nn.Tanh())]
        self.module = torch.nn.Sequential(*hidden, torch.nn.Linear(256, num_actions))

    def predict(self, observation, action_masks):
        with self.torch.no_grad():
            logits = self.module(self.torch.as_tensor(observation).float().flatten(1)).numpy()
        return np.where(action_masks, logits, -np.inf).argmax(axis=1), None


def test_eight_learners_that_ask_a_network_together(report):
    vector = pytest.importorskip("gymnasium.vector")
    opponents = {1: Network(18, 9)}

    def make():
        return pm.LearnerEnv(pm.wrap(raw("tictactoe"), SEATED, resample_every=1), opponents)

    environments, times = [vector.SyncVectorEnv([make] * 8), pm.LearnerVectorEnv([make] * 8)], ([], [])
    for envs in environments:
        envs.reset(seed=0)
    for step in range(100):
        for envs, own in zip(environments, times, strict=True):
            rng = random.Random(step)
            actions = np.array([legal(mask, rng) if any(mask) else 0 for mask in envs.call("action_masks")])
            own.append(timed(envs.step, actions)[0])
    ratio = statistics.median(together / separate for separate, together in zip(*times, strict=True))
    report("eight tic-tac-toe learners, 2x256 network", "the same, one by one", ratio, 0.6, 0.8)


@pytest.mark.parametrize(
    ("name", "settings"), [("pettingzoo.classic.rps.rps", {}), ("mpe2.simple_spread_v3", {"N": 2})]
)
def test_learner_step_against_a_network_of_stable_baselines3(report, name, settings):
    sb3 = pytest.importorskip("stable_baselines3", reason="needs stable-baselines3")
    pytest.importorskip("torch").set_num_threads(1)
    make = pytest.importorskip(name).raw_env
    settings = {"max_cycles": 1000, **settings}
    model = sb3.PPO("MlpPolicy", pm.LearnerEnv(pm.wrap(make(**settings), FIRST), ["random"] * 2), device="cpu")

    def ask(observation, agent, info):
        return int(model.predict(np.asarray(observation))[0])

    environments = ByHand(make(**settings), ask), pm.LearnerEnv(pm.wrap(make(**settings), FIRST), {1: model})
    times = [], []
    for env in environments:
        env.reset()
    for _ in range(500):
        for env, own in zip(environments, times, strict=True):
            own.append(timed(env.step, 0)[0])
    theirs, ours = map(statistics.median, times)
    what = f"LearnerEnv.step, PPO as the opponent, {name.split('.')[-1]}"
    report(what, "a loop that calls the same predict", ours / theirs, 1.15, 1.5)
