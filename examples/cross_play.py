"""Cross-play in a cooperative environment: how well does each policy work with partners that it does not know?

In simple_spread, two agents earn more the closer some agent is to each landmark, and lose when they collide. `first`
and `second` follow opposite conventions, so each works with itself and fails with the other. `nearest` has none.

    python examples/cross_play.py [picture.png]
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from mpe2 import simple_spread_v3

import pz_policymap as pm


def towards(distance):
    """Returns the action that moves along the longer axis of a distance, shape (2,)."""
    axis = int(np.abs(distance).argmax())
    return 0 if np.abs(distance).max() < 0.1 else 1 + 2 * axis + int(distance[axis] > 0)


def landmarks(observation):
    """Returns the distances to both landmarks, shape (2, 2)."""
    return observation[4:8].reshape(2, 2)


def first(observation, agent, info):
    """agent_0 takes landmark 0, agent_1 takes landmark 1."""
    return towards(landmarks(observation)[int(agent[-1])])


def second(observation, agent, info):
    """agent_0 takes landmark 1, agent_1 takes landmark 0."""
    return towards(landmarks(observation)[1 - int(agent[-1])])


def nearest(observation, agent, info):
    """Each agent takes the landmark that is nearest to it."""
    distances = landmarks(observation)
    return towards(distances[np.linalg.norm(distances, axis=1).argmin()])


def make_env():
    """Returns simple_spread for two agents."""
    return simple_spread_v3.parallel_env(N=2, local_ratio=0.0, max_cycles=25)


def main(picture: str) -> None:
    """Plays every pair of policies, copies of the same one included."""
    entrants = {"first": first, "second": second, "nearest": nearest, "random": "random"}
    result = pm.tournament(make_env, entrants, cycles=20, self_matches=True)
    print(result)
    print()
    print(result.pairs())
    result.plot().savefig(picture)
    gaps = result.cooperation().gaps
    print()
    for policy, name in enumerate(result.names):
        print(f"{name}: self-play minus cross-play is {gaps[policy]:+.1f}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else str(Path(tempfile.mkdtemp()) / "cross_play.png"))
