"""Entrants and a comparison that the tests of tournaments share."""

import pz_policymap as pm
from tests import cli_bots

ENTRANTS = {
    "random": "random",
    "first": cli_bots.first_free,
    "last": pm.Entrant(getattr, cli_bots, "last_free"),
    "python": cli_bots.draws_globally,
    "numpy": cli_bots.draws_from_numpy,
}


def outcomes(result):
    """Returns names in seat order, returns and lengths of all games, sorted."""
    return sorted(
        (tuple(result.names[policy] for policy in episode.policies), episode.returns, episode.lengths)
        for episode in result.episodes
    )
