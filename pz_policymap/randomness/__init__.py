"""Random bits as a pure function of seed, environment, seat, episode and stream."""
