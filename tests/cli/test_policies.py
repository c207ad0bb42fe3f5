"""Policies by name."""

import pytest

from pz_policymap.cli.errors import CommandError, UsageError
from pz_policymap.cli.named import object_named
from pz_policymap.cli.policies import policies_named, policy_names
from tests import cli_bots


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["3"], ["random"] * 3),
        (["random"], ["random"]),
        (["random", "tests.cli_bots:slow"], ["random", "tests.cli_bots:slow"]),
    ],
)
def test_policy_names_number_means_random_policies(words, names):
    assert policy_names(words) == names


@pytest.mark.parametrize(
    ("words", "message"), [(["0"], "at least 1, got 0"), (["3", "random"], "got '3'"), (["x"], "got 'x'")]
)
def test_policy_names_invalid_word_raises(words, message):
    with pytest.raises(UsageError, match=message):
        policy_names(words)


def test_policies_named_builtin_without_signature_is_accepted():
    (policy,) = policies_named(["builtins:max"])  # written in C
    assert policy is max


def test_policies_named_accepts_functions_classes_and_predictors():
    names = [f"tests.cli_bots:{name}" for name in ("first_free", "Remembers", "Predicts")]
    function, remembers, predicts = policies_named(names)
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
def test_policies_named_non_policy_raises(name, message):
    with pytest.raises(UsageError, match=message):
        policies_named([name if ":" in name else f"tests.cli_bots:{name}"])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("CannotBeMade", "policy 'tests.cli_bots:CannotBeMade' cannot be made: RuntimeError: no weights here"),
        ("Miscalls", r"policy 'tests.cli_bots:Miscalls' cannot be made: two_arguments\(\) missing 2"),
    ],
)
def test_policies_named_failing_class_names_the_cause(name, message):
    with pytest.raises(CommandError, match=message) as raised:
        policies_named([f"tests.cli_bots:{name}"])
    assert raised.value.code == 1


def test_an_object_is_named_by_module_and_name():
    with pytest.raises(UsageError, match="policy must be written as module:name, got 'random'"):
        object_named("policy", "random")
