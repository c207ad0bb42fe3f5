"""Policies by name, and the random one."""

import numpy as np
import pytest
from gymnasium import spaces

from pz_policymap.cli.errors import CommandError, UsageError
from pz_policymap.evaluation.policies import RandomPolicy, policies_named, policy_names
from tests import cli_bots


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["3"], ["random"] * 3),
        (["random"], ["random"]),
        (["random", "tests.cli_bots:slow"], ["random", "tests.cli_bots:slow"]),
    ],
)
def test_a_number_stands_for_random_ones(words, names):
    assert policy_names(words) == names


@pytest.mark.parametrize(
    ("words", "message"), [(["0"], "at least 1, got 0"), (["3", "random"], "got '3'"), (["x"], "got 'x'")]
)
def test_words_that_name_none_are_refused(words, message):
    with pytest.raises(UsageError, match=message):
        policy_names(words)


def test_a_function_without_a_signature_is_a_policy():
    (policy,) = policies_named(["builtins:max"], lambda agent: None)  # written in C
    assert policy is max


def test_functions_classes_and_predictors_are_policies():
    names = [f"tests.cli_bots:{name}" for name in ("first_free", "Remembers", "Predicts")]
    function, remembers, predicts = policies_named(names, lambda agent: None)
    assert function is cli_bots.first_free
    assert isinstance(remembers, cli_bots.Remembers)
    assert isinstance(predicts, cli_bots.Predicts)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("two_arguments", "must take three arguments: observation, agent and info"),
        ("NUMBER", "must be a function of observation, agent and info, got 3"),
        ("Needs", "a class that cannot be made without arguments: .*'weights'"),
        ("builtins:dict", "must be a function of observation, agent and info, got {}"),  # a class without a signature
        ("nix", "has no 'nix'"),
    ],
)
def test_what_is_no_policy_is_refused(name, message):
    with pytest.raises(UsageError, match=message):
        policies_named([name if ":" in name else f"tests.cli_bots:{name}"], lambda agent: None)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("CannotBeMade", "policy 'tests.cli_bots:CannotBeMade' cannot be made: RuntimeError: no weights here"),
        ("Miscalls", r"policy 'tests.cli_bots:Miscalls' cannot be made: two_arguments\(\) missing 2"),
    ],
)
def test_a_class_that_fails_says_why(name, message):
    with pytest.raises(CommandError, match=message) as raised:
        policies_named([f"tests.cli_bots:{name}"], lambda agent: None)
    assert raised.value.code == 1


SPACE = spaces.Discrete(50)


def actions(policy, *seed, agents="ab", mask=None):
    policy.begin(*seed)
    observation = {} if mask is None else {"action_mask": mask}
    return [policy(observation, agent, {}) for agent in agents for _ in range(30)]


def test_the_random_policy_follows_from_its_seed_and_leaves_the_environments_space_alone():
    policy, other = RandomPolicy(lambda agent: SPACE), RandomPolicy(lambda agent: SPACE)
    SPACE.seed(5)
    first = actions(policy, 1, 2)
    assert first == actions(policy, 1, 2) == actions(other, 1, 2)
    assert first != actions(policy, 1, 3)
    assert first[:30] != first[30:]  # agents draw apart
    now = [int(SPACE.sample()) for _ in range(5)]
    SPACE.seed(5)
    assert now == [int(SPACE.sample()) for _ in range(5)]


@pytest.mark.parametrize("kind", [np.array, list, lambda mask: np.array(mask, bool)])
def test_the_random_policy_respects_masks_in_observations_and_infos(kind):
    allowed = {3, 44}
    mask = kind([int(action in allowed) for action in range(50)])
    policy = RandomPolicy(lambda agent: SPACE)
    assert set(actions(policy, 0, mask=mask)) == allowed
    assert {int(policy(0, "a", {"action_mask": mask})) for _ in range(30)} == allowed


def test_the_random_policy_notices_that_an_agent_has_another_space():
    held = [spaces.Discrete(50)]
    policy = RandomPolicy(lambda agent: held[0])
    assert max(actions(policy, 0)) > 1
    held[0] = spaces.Discrete(2)
    assert set(actions(policy, 1)) == {0, 1}
