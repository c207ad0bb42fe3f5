"""Results of episodes: ledgers, ratings, intervals and opponent weights, independent of any environment."""
