"""Growth: cost of a draw with environments, seats, policies and blocks; size of a state with episodes."""

import pickle

import pytest

from pz_policymap import PolicyAssigner, Uniform

ENVS = 100_000


def assigner(num_envs=ENVS, num_seats=4, num_policies=8, episodes=0):
    """Returns an assigner at a late episode that draws at every episode."""
    drawing = PolicyAssigner(Uniform(num_policies), range(num_seats), num_envs, resample_every=1, seed=0)
    state = drawing.state_dict()
    state["episode"] += episodes
    drawing.load_state_dict(state)
    return drawing


@pytest.mark.parametrize(
    ("what", "against", "many", "few", "times"),
    [
        ("a draw, for each of 10^6 environments", "of 10^5", {"num_envs": 10**6}, {}, 10),
        ("a draw, for each of 64 seats", "of 4", {"num_envs": 25_000, "num_seats": 64}, {}, 4),
        ("a draw of 10^6 policies", "8 policies", {"num_policies": 10**6}, {}, 1),
        ("a draw at block 10^12", "block 0", {"episodes": 10**12}, {}, 1),
    ],
)
def test_draw_cost_is_linear_in_seats(side_by_side, report, what, against, many, few, times):
    draws = [assigner(**settings).begin_episodes for settings in (many, few)]
    costs = side_by_side(*draws, rounds=15)
    report(what, against, costs[0] / costs[1] / times, 1.5, 3)


def test_state_size_is_constant_over_episodes(report):
    played = PolicyAssigner(8, ["a", "b"], num_envs=100, seed=0)
    played.begin_episodes()
    after_one = len(pickle.dumps(played.state_dict()))
    for _ in range(10_000):
        played.begin_episodes()
    report("state after 10,001 episodes", "after one", len(pickle.dumps(played.state_dict())) / after_one, 1, 1)
