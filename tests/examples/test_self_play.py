"""Tests that the self-play examples reach the results of theory over several seeds, and draw them."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import pz_policymap as pm

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name):
    """The example as a module."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


rps = example("rock_paper_scissors")
prioritised = example("prioritised_opponents")
SEEDS = range(3)


class TestRockPaperScissors:
    @pytest.mark.parametrize("seed", SEEDS)
    def test_best_responses_to_the_equilibrium_converge_to_thirds(self, seed):
        shares = rps.train(rps.OPPONENTS["equilibrium"], generations=6, episodes=30, seed=seed)
        assert rps.exploitability(shares)[0] > 0.9  # a single move at first
        assert (rps.exploitability(shares)[-3:] < 0.05).all()
        np.testing.assert_allclose(shares[-3:], 1 / 3, atol=0.05)

    @pytest.mark.parametrize("seed", SEEDS)
    def test_pure_self_play_cycles(self, seed):
        shares = rps.train(rps.OPPONENTS["latest"], generations=9, episodes=12, seed=seed)
        assert shares.argmax(axis=1).tolist() == [1, 2, 0] * 3  # paper, scissors, rock, paper, ...
        assert (rps.exploitability(shares) == 1.0).all()

    def test_exploitability_equals_hand_computed_values(self):
        shares = np.array([[1 / 3, 1 / 3, 1 / 3], [1.0, 0.0, 0.0], [0.5, 0.5, 0.0]])
        # By hand: against rock and paper alike, paper wins half the games and draws the others.
        np.testing.assert_allclose(rps.exploitability(shares), [0.0, 1.0, 0.5], atol=1e-15)


class TestPrioritisedOpponents:
    def test_pfsp_finds_the_strongest_opponent_in_fewer_games_than_uniform_sampling(self):
        games = {name: games.sum(axis=1) for name, games in prioritised.compare(range(10)).items()}
        # Four other groups of ten seeds gave ratios from 0.2 to 0.35.
        assert games["hard"].mean() < 0.6 * games["uniform"].mean()
        assert (games["hard"] < games["uniform"]).sum() >= 7

    def test_strongest_needs_a_standard_error_on_both_sides(self):
        payoff = pm.Payoff(prioritised.LEARNER + 1)
        assert prioritised.strongest(payoff) is None
        for opponent in range(prioritised.NUM_OPPONENTS):
            for _ in range(8):
                lost = opponent == 5
                payoff.record(pm.Episode([prioritised.LEARNER, opponent], [0.0, 1.0] if lost else [1.0, 0.0]))
        assert prioritised.strongest(payoff) == 5


class TestPictures:
    @pytest.mark.parametrize(
        ("module", "results"),
        [
            (rps, {"equilibrium": np.full((4, 3), 1 / 3), "latest": np.eye(3)[[1, 2, 0, 1]]}),
            (prioritised, {"hard": np.full((3, 24), 4), "uniform": np.full((3, 24), 20)}),
        ],
    )
    def test_a_picture_is_written(self, module, results, tmp_path):
        pytest.importorskip("matplotlib", reason="pip install matplotlib")
        module.draw(results, tmp_path / "picture.png")
        assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")

    def test_scripts_print_the_final_results(self, capsys, tmp_path):
        pytest.importorskip("matplotlib", reason="pip install matplotlib")
        prioritised.main(tmp_path / "picture.png", seeds=range(1))
        rps.main()
        printed = capsys.readouterr().out
        assert [line.split()[0] for line in printed.splitlines()] == ["hard", "uniform", "equilibrium", "latest"]
        assert (tmp_path / "picture.png").exists()
