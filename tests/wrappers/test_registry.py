"""PettingZoo's own tests, on every environment that installs here and in every arrangement of wrappers.

The registries list the environments. A case that fails with the policy wrapper is excused where the same test fails
without it too, and nowhere else; it is then skipped under its name and reason. What ran is counted at the end.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pettingzoo
import pytest
from gymnasium.utils import seeding
from gymnasium.utils.env_checker import data_equivalence
from pettingzoo.test import api_test, max_cycles_test, parallel_api_test, parallel_seed_test, seed_test
from pettingzoo.utils.env import AECEnv
from pettingzoo.utils.wrappers import BaseParallelWrapper, BaseWrapper

import pz_policymap as pm
from tests.arrangements import ARRANGEMENTS, ENVIRONMENTS, Arrangement, Environment, Wrap, cases

pytestmark = pytest.mark.filterwarnings("ignore")

CYCLES = 10
NUM_CASES = 2398  # that pass with PettingZoo 1.27.0, mpe2 1.1.1 and SuperSuit 3.11.0
NUM_POLICIES = 1000  # so many that a stale or mixed-up tag is seen

started: set[str] = set()
passed: set[str] = set()


class Policies:
    """Puts the policy wrapper into a stack, and stores it."""

    wrapper: Any = None

    def __call__(self, env: Any, **settings: Any) -> Any:
        self.wrapper = pm.wrap(env, NUM_POLICIES, resample_every=1, **settings)
        return self.wrapper


def nothing(env: Any) -> Any:
    return env


def glass(env: Any) -> Any:
    """A wrapper without effect, because adjacent PettingZoo converters cancel each other."""
    return BaseWrapper(env) if isinstance(env, AECEnv) else BaseParallelWrapper(env)


@pytest.fixture(autouse=True)
def reproducible(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seeds the generators that PettingZoo's tests leave unseeded, so that results do not change between runs."""
    np_random = seeding.np_random
    monkeypatch.setattr(seeding, "np_random", lambda seed=None: np_random(0 if seed is None else seed))


def hold(name: str, check: Callable[[Wrap], None]) -> None:
    """Runs a check with the policy wrapper; skips where it fails, and the same check without it fails too."""
    started.add(name)
    try:
        check(Policies())
    except Exception as error:  # noqa: BLE001  # whatever an environment raises, it is judged here
        with pytest.raises(Exception) as bare:
            check(nothing)
        differs = "" if told(bare.value) == told(error) else f" (with it: {told(error)})"
        pytest.skip(f"{name} fails without the policy wrapper too: {told(bare.value)}{differs}")
    passed.add(name)


def told(error: BaseException) -> str:
    """Returns the message of an error, without the details that pytest adds to asserts."""
    return f"{type(error).__name__}: {error}".partition("\n")[0]


def parametrized(*apis: str) -> pytest.MarkDecorator:
    table = cases(*apis)
    ids = [f"{environment.name}-{arrangement.name}-{api}" for environment, arrangement, api in table]
    return pytest.mark.parametrize(("environment", "arrangement", "api"), table, ids=ids)


@parametrized("aec", "parallel")
def test_api_test_passes(environment: Environment, arrangement: Arrangement, api: str, request: Any) -> None:
    def check(policy: Wrap) -> None:
        env = arrangement.build(environment, api, policy)
        (api_test if api == "aec" else parallel_api_test)(env, num_cycles=CYCLES)

    hold(request.node.name, check)


@parametrized("aec", "parallel")
def test_seed_test_passes(environment: Environment, arrangement: Arrangement, api: str, request: Any) -> None:
    def check(policy: Wrap) -> None:
        test = seed_test if api == "aec" else parallel_seed_test
        test(lambda: arrangement.build(environment, api, policy), num_cycles=CYCLES)

    hold(request.node.name, check)


BOTH = [
    (environment, arrangement)
    for environment in ENVIRONMENTS
    for arrangement in ARRANGEMENTS
    if len(environment.makers) == len(arrangement.stacks) == 2
]


@pytest.mark.parametrize(("environment", "arrangement"), BOTH, ids=[f"{e.name}-{a.name}" for e, a in BOTH])
def test_max_cycles_test_passes(environment: Environment, arrangement: Arrangement, request: Any) -> None:
    def check(policy: Wrap) -> None:
        def make(api: str, **settings: Any) -> Any:
            return arrangement.build(environment, api, policy, **settings)

        max_cycles_test(SimpleNamespace(env=partial(make, "aec"), parallel_env=partial(make, "parallel")))

    hold(request.node.name, check)


@parametrized("aec", "parallel")
def test_trajectory_equals_the_bare_one_and_infos_are_tagged(
    environment: Environment, arrangement: Arrangement, api: str, request: Any
) -> None:
    def check(policy: Wrap) -> None:
        pinned = partial(policy, seed=0) if isinstance(policy, Policies) else glass
        env = arrangement.build(environment, api, pinned)
        bare = arrangement.build(environment, api, glass)
        tags = Tags(env, policy, api in arrangement.invents)
        play = play_aec if api == "aec" else play_parallel
        play(env, bare, tags, seed=7)
        play(env, bare, tags, seed=8)
        tags.finish()

    hold(request.node.name, check)


@parametrized("aec", "parallel")
def test_wrapped_warnings_are_those_of_the_bare_environment(
    environment: Environment, arrangement: Arrangement, api: str, request: Any
) -> None:
    def check(policy: Wrap) -> None:
        bare = warnings_of(partial(arrangement.build, environment, api, glass), api)  # and all that is said only once
        assert warnings_of(partial(arrangement.build, environment, api, policy), api) <= bare

    hold(request.node.name, check)


class Tags:
    """Compares the tags in infos with `policy_ids`, and removes them."""

    def __init__(self, env: Any, policy: Wrap, invented: bool) -> None:
        self.wrapper = policy.wrapper if isinstance(policy, Policies) else None
        self.invented = invented  # some infos come from a wrapper outside
        self.count = 0
        if self.wrapper is not None:
            assert pm.find_assigner(env) is self.wrapper.assigner

    def off(self, infos: dict[Any, Any], agents: Any) -> dict[Any, Any]:
        if self.wrapper is None:
            return untagged(infos)
        policy_ids = self.wrapper.assigner.assignment()
        assert policy_ids == self.wrapper.policy_ids
        for agent in agents:
            if self.invented and "policy_id" not in infos[agent]:
                continue
            policy = infos[agent]["policy_id"]
            assert type(policy) is int
            assert policy == policy_ids[agent] or (self.invented and policy in policy_ids.values()), agent
            self.count += 1
        return untagged(infos)

    def finish(self) -> None:
        if self.wrapper is not None:
            assert self.count > 0
            assert self.wrapper.assigner.episode.tolist() == [1]


def untagged(infos: dict[Any, Any]) -> dict[Any, Any]:
    """Returns infos without tags, and without what the turn-based converter writes into the environment's own dicts."""
    taken = ("policy_id", "active_agent")
    return {agent: {key: info[key] for key in info if key not in taken} for agent, info in infos.items()}


def same(what: str, ours: Any, theirs: Any) -> None:
    assert data_equivalence(ours, theirs, exact=True), f"{what} differ\n{ours}\n{theirs}"


def play_aec(env: Any, bare: Any, tags: Tags, seed: int) -> None:
    for one in (env, bare):
        one.reset(seed=seed)
    for _ in range(CYCLES * len(bare.agents)):
        same("agents", list(env.agents), list(bare.agents))
        infos, bare_infos = tags.off(env.infos, env.agents), untagged(bare.infos)
        same("infos", {a: infos[a] for a in env.agents}, {a: bare_infos[a] for a in env.agents})
        if not env.agents:
            break
        agent = env.agent_selection
        *ours, info = env.last()
        *theirs, bare_info = bare.last()
        same("agent_selection", agent, bare.agent_selection)
        same("last()", ours, theirs)
        same("infos of last()", tags.off({agent: info}, [agent]), untagged({agent: bare_info}))
        action = None if ours[2] or ours[3] else bare.action_space(agent).sample(mask(ours[0], info))
        for one in (env, bare):
            one.step(action)
        for name in ("rewards", "terminations", "truncations", "_cumulative_rewards"):
            same(name, getattr(env, name), getattr(bare, name))


def play_parallel(env: Any, bare: Any, tags: Tags, seed: int) -> None:
    (ours, infos), (theirs, bare_infos) = env.reset(seed=seed), bare.reset(seed=seed)
    same("observations", ours, theirs)
    same("infos", tags.off(infos, ours), untagged(bare_infos))
    for _ in range(CYCLES):
        if not env.agents:
            break
        actions = {a: bare.action_space(a).sample(mask(theirs[a], bare_infos[a])) for a in bare.agents}
        *results, infos = env.step(actions)
        *bare_results, bare_infos = bare.step(actions)
        same("results of step()", results, bare_results)
        same("agents", list(env.agents), list(bare.agents))
        theirs = bare_results[0]
        same("infos", tags.off(infos, theirs), untagged(bare_infos))


def warnings_of(make: Callable[[], Any], api: str) -> set[str]:
    """Returns the warnings of creating, playing and closing an environment."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        env = make()
        for seed in (7, None):
            if api == "aec":
                env.reset(seed=seed)
                seed_actions(env)
                for agent in env.agent_iter(CYCLES):
                    observation, _, termination, truncation, info = env.last()
                    over = termination or truncation
                    env.step(None if over else env.action_space(agent).sample(mask(observation, info)))
            else:
                observations, infos = env.reset(seed=seed)
                seed_actions(env)
                for _ in range(CYCLES):
                    if not env.agents:
                        break
                    actions = {a: env.action_space(a).sample(mask(observations[a], infos[a])) for a in env.agents}
                    observations, *_, infos = env.step(actions)
        env.close()
    return {f"{warning.category.__name__}: {warning.message}" for warning in caught}


def seed_actions(env: Any) -> None:
    """Gives an environment the common interface of its API."""
    for agent in env.agents:
        env.action_space(agent).seed(7)


def mask(observation: Any, info: Any) -> Any:
    """Returns the mask of legal actions, from the info or the observation."""
    inside = observation if isinstance(observation, dict) and "action_mask" in observation else info
    return inside.get("action_mask")


@pytest.mark.skipif(not hasattr(pettingzoo, "aec_registry"), reason="the number is that of PettingZoo's registry")
def test_number_of_passing_cases_is_at_least_the_expected_one() -> None:
    if len(started) < 4 * len(cases("aec", "parallel")) + len(BOTH):
        pytest.skip("only a part of this file was run in this process")
    missing = [environment.name for environment in ENVIRONMENTS if not any(environment.name in name for name in passed)]
    assert len(passed) >= NUM_CASES, f"{len(passed)} cases ran, of {len(started)}; none at all of {missing}"
