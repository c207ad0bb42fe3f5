"""The kinds of policies, and their actions for the agents of an environment."""
