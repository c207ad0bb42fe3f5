"""JAX: a real JaxMARL game behind the wrapper, and inside `jit` by a table of assignments: `nox -s jax`."""

import numpy as np
import pytest

import pz_policymap as pm

jax = pytest.importorskip("jax")
jnp = jax.numpy
jaxmarl = pytest.importorskip("jaxmarl")

GAME = jaxmarl.make("MPE_simple_spread_v3", num_agents=2, num_landmarks=2, max_steps=5)
AGENTS, NUM_ENVS = GAME.agents, 8
RESET, STEP = jax.jit(jax.vmap(GAME.reset)), jax.jit(jax.vmap(GAME.step))


class Simulator:
    """What a JaxMARL game needs around it: a key, a state, `reset` and `step`. It resets in the same step."""

    num_envs, possible_agents, metadata = NUM_ENVS, AGENTS, {"autoreset_mode": "SameStep"}

    def reset(self, *, seed=0):
        self.key = jax.random.PRNGKey(seed)
        observations, self.state = RESET(self._keys())
        return observations, {}

    def step(self, actions):
        observations, self.state, rewards, dones, infos = STEP(self._keys(), self.state, actions)
        return observations, rewards, dones, infos

    def _keys(self):
        self.key, key = jax.random.split(self.key)
        return jax.random.split(key, NUM_ENVS)


def actions_at(step):
    moves = np.random.default_rng(step).integers(0, 5, (2, NUM_ENVS))
    return dict(zip(AGENTS, map(jnp.asarray, moves), strict=True))


def test_bare_and_wrapped_trajectories_are_identical_and_tags_change_at_every_end():
    played = []
    bare, env = Simulator(), pm.wrap(Simulator(), 9, seed=1, resample_every=1)
    env = pm.record_results(env, played.append)
    observations, (expected, _) = env.reset(seed=3)[0], bare.reset(seed=3)
    episode = np.zeros(NUM_ENVS, int)
    for step in range(20):
        for agent in AGENTS:
            assert (observations[agent] == expected[agent]).all()
        observations, rewards, dones, infos = env.step(actions_at(step))
        expected, bare_rewards, bare_dones, _ = bare.step(actions_at(step))
        assert dones.keys() == bare_dones.keys()
        episode += np.asarray(bare_dones["__all__"])
        for agent in AGENTS:
            assert isinstance(observations[agent], jax.Array)
            assert (rewards[agent] == bare_rewards[agent]).all()
            drawn = pm.assignments(9, AGENTS, seed=1, env_index=range(NUM_ENVS), episode=episode, resample_every=1)
            assert infos[agent]["policy_id"].tolist() == drawn[:, AGENTS.index(agent)].tolist()
    assert len(played) == episode.sum() >= 3 * NUM_ENVS
    assert len({episode.lengths for episode in played}) == 1
    first = pm.assignments(9, AGENTS, seed=1, env_index=range(NUM_ENVS), episode=0, resample_every=1)
    assert [episode.policies for episode in played[:NUM_ENVS]] == list(map(tuple, first.tolist()))


def test_policy_ids_as_jax_arrays_are_the_ids():
    env = pm.wrap(Simulator(), 9, seed=1)
    observations, _ = env.reset()
    ids = env.policy_ids_as(observations)
    assert isinstance(ids, jax.Array)
    assert ids.tolist() == env.policy_ids.tolist()
    assert env.policy_ids_as(observations) is ids


def test_table_of_assignments_inside_jit_equals_the_assigner():
    """The recipe: the host makes the table of the next episodes, `scan` indexes it with a counter per environment."""
    blocks, every, steps = 4, 2, 33
    envs, first_episodes = np.arange(NUM_ENVS)[:, np.newaxis], every * np.arange(blocks)
    table = pm.assignments(9, AGENTS, seed=4, env_index=envs, episode=first_episodes, resample_every=every)
    assert table.shape == (NUM_ENVS, blocks, len(AGENTS))

    def rollout(key, table):
        def one_step(carry, key):
            state, episode = carry
            policy_ids = jnp.take_along_axis(table, (episode // every)[:, None, None], axis=1)[:, 0]
            moves = jax.random.randint(key, (NUM_ENVS, len(AGENTS)), 0, 5)
            actions = {agent: moves[:, seat] for seat, agent in enumerate(AGENTS)}
            keys = jax.random.split(key, NUM_ENVS)
            _, state, _, dones, _ = jax.vmap(GAME.step)(keys, state, actions)
            return (state, episode + dones["__all__"]), (policy_ids, dones["__all__"])

        key, key_reset = jax.random.split(key)
        _, state = jax.vmap(GAME.reset)(jax.random.split(key_reset, NUM_ENVS))
        # Staggered, so that environments end at different steps.
        state = state.replace(step=jnp.arange(NUM_ENVS) % 5)
        return jax.lax.scan(one_step, (state, jnp.zeros(NUM_ENVS, int)), jax.random.split(key, steps))[1]

    ids, dones = jax.jit(rollout)(jax.random.PRNGKey(0), jnp.asarray(table))
    assigner = pm.PolicyAssigner(9, AGENTS, NUM_ENVS, seed=4, resample_every=every)
    expected = assigner.begin_episodes()
    assert len({tuple(done) for done in np.asarray(dones).tolist()}) > 2
    for shown, done in zip(np.asarray(ids), np.asarray(dones), strict=True):
        assert shown.tolist() == expected.tolist()
        expected = assigner.begin_episodes(done)


def test_population_of_three_learns_from_its_own_rows_only():
    """One REINFORCE update per step for the whole batch; each policy learns from its own rows."""
    env = pm.wrap(Simulator(), pm.Weighted([0.5, 0.5, 0]), seed=0, resample_every=1)
    size = GAME.observation_space(AGENTS[0]).shape[0]
    weights = jnp.zeros((3, size, 5))  # stacked parameters, one matrix per policy

    @jax.jit
    def sample(weights, key, rows, ids):
        logits = jnp.einsum("ro,roa->ra", rows, weights[ids])
        return jax.random.categorical(key, logits)

    @jax.jit
    def update(weights, rows, ids, actions, advantages):
        def loss(weights):
            logits = jax.nn.log_softmax(jnp.einsum("ro,roa->ra", rows, weights[ids]))
            return -(jnp.take_along_axis(logits, actions[:, None], 1)[:, 0] * advantages).mean()

        return weights - 0.05 * jax.grad(loss)(weights)

    observations, _ = env.reset(seed=0)
    for number in range(200):
        ids = env.policy_ids_as(observations).reshape(-1)
        rows = jnp.stack([observations[agent] for agent in AGENTS], 1).reshape(-1, size)
        actions = sample(weights, jax.random.PRNGKey(number), rows, ids)
        moves = actions.reshape(NUM_ENVS, 2)
        observations, rewards, _, _ = env.step({agent: moves[:, seat] for seat, agent in enumerate(AGENTS)})
        earned = jnp.stack([rewards[agent] for agent in AGENTS], 1).reshape(-1)
        if number == 0:  # rows of policy 0 alone move policy 0 alone
            alone = update(weights, rows, ids, actions, jnp.where(ids == 0, earned, 0))
            assert (alone[1:] == weights[1:]).all()
            assert (alone[0] != weights[0]).any()
        weights = update(weights, rows, ids, actions, earned - earned.mean())
    assert bool((weights[0] != weights[1]).any())
    assert bool((weights[2] == 0).all()), "the policy without rows has not changed"
