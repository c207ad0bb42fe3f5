"""One policy learns in a `gymnasium.Env` while other policies control the other seats."""
