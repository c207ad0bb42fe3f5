"""`Episode`: defaults, plain values, logs and refused arguments."""

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pz_policymap as pm
from tests.results.ledgers import episodes

FIELDS = [field.name for field in dataclasses.fields(pm.Episode)]


class TestEpisode:
    def test_episode_fields_are_plain_and_frozen(self):
        episode = pm.Episode(np.array([0, 1]), np.array([1, -1]), np.array([3, 3]), ["r", "b"], agents=["x", "y"])
        assert episode == pm.Episode([0, 1], [1.0, -1.0], [3, 3], ["r", "b"], [1.0, -1.0], ["x", "y"])
        assert all(type(value) is float for value in episode.returns)
        assert all(type(value) is int for value in episode.policies + episode.lengths)
        with pytest.raises(dataclasses.FrozenInstanceError):
            episode.returns = ()

    def test_episode_defaults_are_one_side_per_seat_scored_by_return(self):
        episode = pm.Episode([2, 2], [0.5, 1.5])
        assert (episode.lengths, episode.sides, episode.scores) == ((0, 0), (0, 1), (0.5, 1.5))
        assert episode.agents == (0, 1)

    def test_episode_repr_leaves_out_defaults(self):
        assert repr(pm.Episode([1], [2.0])) == "Episode(policies=(1,), returns=(2.0,))"
        shown = "Episode(policies=(0, 1), returns=(0.0, 0.0), lengths=(3, 3), agents=('a', 'b'))"
        assert repr(pm.Episode([0, 1], [0.0, 0.0], [3, 3], agents=["a", "b"])) == shown

    @given(st.lists(episodes(), max_size=8))
    def test_episode_restored_from_json_gives_the_same_ledger(self, played):
        log = [json.dumps(dataclasses.asdict(episode)) for episode in played]
        live, read = pm.Payoff(4), pm.Payoff(4)
        for episode, line in zip(played, log, strict=True):
            live.record(episode)
            read.record(pm.Episode(**json.loads(line)))
        np.testing.assert_array_equal(live.state_dict()["table"], read.state_dict()["table"])

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"policies": []}, ValueError, "policies must hold at least one seat, got none$"),
            ({"policies": [0, -1]}, ValueError, "policies must be from 0"),
            ({"policies": [0, 2**31]}, ValueError, "policies must be from 0"),
            ({"policies": [0, 1.0]}, TypeError, "policies must be an integer"),
            ({"policies": 2}, TypeError, "policies must be a sequence"),
            ({"policies": "01"}, TypeError, "policies must be a sequence"),
            ({"policies": {0: 5, 1: 6}}, TypeError, "policies must be a sequence"),
            ({"returns": [1.0]}, ValueError, "returns must hold 2 values"),
            ({"returns": []}, ValueError, "returns must hold 2 values"),
            ({"returns": [1.0, float("nan")]}, ValueError, "returns must be finite"),
            ({"returns": [1.0, None]}, TypeError, "returns must be a number"),
            ({"returns": [1.0, "1"]}, TypeError, "returns must be a number"),
            ({"returns": [1.0, 10**400]}, TypeError, "returns must be a number"),
            ({"returns": [0.0, 2e300]}, ValueError, r"returns must be finite, from -1e\+300 to 1e\+300, got 2e\+300"),
            ({"scores": [-2e300, 0.0]}, ValueError, r"scores must be finite, from -1e\+300 to 1e\+300, got -2e\+300"),
            ({"lengths": [1, -1]}, ValueError, "lengths must be from 0"),
            (
                {"lengths": [1, 2**53 + 1]},
                ValueError,
                "lengths must be from 0 to 9007199254740992, got 9007199254740993",
            ),
            ({"lengths": [1, 2, 3]}, ValueError, "lengths must hold 2 values"),
            ({"sides": ["r"]}, ValueError, "sides must hold 2 values"),
            ({"sides": [["r"], ["b"]]}, TypeError, "sides must be hashable"),
            ({"sides": None}, TypeError, "sides must be a sequence"),
            ({"scores": [float("inf"), 0.0]}, ValueError, "scores must be finite"),
            ({"agents": ["a"]}, ValueError, "agents must hold 2 values"),
            *(({name: {0, 1}}, TypeError, f"{name} must be a sequence") for name in FIELDS),
        ],
    )
    def test_episode_invalid_arguments_raise(self, arguments, error, message):
        with pytest.raises(error, match=f"^{message}"):
            pm.Episode(**{"policies": [0, 1], "returns": [0.0, 0.0], **arguments})
