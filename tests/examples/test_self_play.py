"""Tests that the self-play examples reach the results of theory over several seeds, and draw them."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import pz_policymap as pm

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name):
    """Returns the example as a module."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


rps = example("rock_paper_scissors")
prioritised = example("prioritised_opponents")
SEEDS = range(3)


class TestRockPaperScissors:
    @pytest.mark.parametrize("seed", SEEDS)
    def test_exploitability_falls_against_the_equilibrium_and_not_against_latest_self(self, seed):
        shares = {name: rps.train(rule, seed=seed) for name, rule in rps.OPPONENTS.items()}
        ours, latest = (rps.exploitability(shares[name]) for name in ("equilibrium", "latest"))
        assert ours[0] > 0.9  # it begins with a single move
        assert (ours[-3:] < 0.25).all()
        assert latest[-5:].mean() > 0.7
        assert ours[-5:].mean() < 0.25 * latest[-5:].mean()
        # The latest snapshots cycle through the moves.
        assert np.bincount(shares["latest"].argmax(axis=1), minlength=3).min() >= 3

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
    def test_draw_with_results_writes_a_picture(self, module, results, tmp_path):
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
