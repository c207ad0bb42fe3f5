"""`RowPolicies`, compared with a model that holds each environment separately in plain lists."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pz_policymap as pm
from pz_policymap.wrappers.autoreset import Autoreset
from pz_policymap.wrappers.row_policies import RowPolicies
from pz_policymap.wrappers.vector_episodes import VectorEpisodes

EPISODES = 40


class Model:
    """One environment: how many episodes it has begun, and which rows of this one have ended."""

    def __init__(self, index, seats, every):
        one = pm.PolicyAssigner(1000, range(seats), seed=3, env_index=index, resample_every=every)
        self.drawn = [one.begin_episodes()[0].tolist() for _ in range(EPISODES)]
        self.episode, self.seats, self.forced = -1, seats, None
        self.begin()

    def begin(self, forced=None):
        self.episode += 1
        self.ended = [False] * self.seats
        self.forced = forced

    @property
    def over(self):
        return all(self.ended)

    @property
    def plays(self):
        drawn = self.drawn[self.episode]
        return drawn if self.forced is None else [d if f < 0 else f for d, f in zip(drawn, self.forced, strict=True)]

    def after_step(self, mode, ended):
        """Returns the policies of the episode that this step ended, if it also began the next one."""
        if mode is Autoreset.NEXT_STEP and self.over:
            self.begin()
        self.ended = [before or now for before, now in zip(self.ended, ended, strict=True)]
        if mode is Autoreset.SAME_STEP and self.over:
            played = self.plays
            self.begin()
            return played
        return None


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_rows_get_the_assignment_of_their_environment(data):
    mode = data.draw(st.sampled_from(Autoreset))
    num_envs, seats, every = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    models = [Model(index, seats, every) for index in range(num_envs)]
    assigner = pm.PolicyAssigner(1000, range(seats), num_envs, seed=3, resample_every=every)
    rows = RowPolicies(assigner, VectorEpisodes(num_envs, seats, mode))
    assert not rows.unfinished.any()
    rows.begin()
    some_rows = st.lists(st.booleans(), min_size=num_envs * seats, max_size=num_envs * seats)
    for _ in range(data.draw(st.integers(1, 12))):
        match data.draw(st.sampled_from(["step", "step", "step", "reset", "some", "forced"])):
            case "step":
                terminations, truncations = data.draw(some_rows), data.draw(some_rows)
                finished = rows.after_step(terminations, truncations)
                done = np.reshape(np.logical_or(terminations, truncations), (num_envs, seats)).tolist()
                played = [model.after_step(mode, ended) for model, ended in zip(models, done, strict=True)]
                assert (finished is None) == all(ids is None for ids in played)
                if finished is not None:
                    groups = finished.rows.reshape(num_envs, seats)
                    assert groups.tolist() == [[ids is not None] * seats for ids in played]
                    assert finished.policy_ids[finished.rows].tolist() == [p for ids in played if ids for p in ids]
            case "reset":
                rows.begin()
                for model in models:
                    model.begin()
            case kind:
                envs = data.draw(st.lists(st.integers(0, num_envs - 1), unique=True, min_size=1))
                row = st.integers(-1, 999)
                matchup = data.draw(
                    st.lists(st.lists(row, min_size=seats, max_size=seats), min_size=num_envs, max_size=num_envs)
                )
                forced = matchup if kind == "forced" else None
                rows.begin(np.array(envs), forced=None if forced is None else np.array(forced, np.int32))
                for index in envs:
                    models[index].begin(None if forced is None else forced[index])
        assert rows.policy_ids.reshape(num_envs, seats).tolist() == [model.plays for model in models]
        assert rows.unfinished.tolist() == [not model.over for model in models]


def test_mapping_that_fails_in_a_step_keeps_the_policies():
    def fn(agents, draw):
        return dict.fromkeys(agents, 7 if draw.episode == 0 else -1)

    assigner = pm.PolicyAssigner(fn, ["a"], num_envs=2, seed=0, resample_every=1)
    rows = RowPolicies(assigner, VectorEpisodes(2, 1, Autoreset.SAME_STEP))
    rows.begin()
    with pytest.raises(ValueError, match="episode 1"):
        rows.after_step([True, False], [False, False])
    assert rows.policy_ids.tolist() == [7, 7]
