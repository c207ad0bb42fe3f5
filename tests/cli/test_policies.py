"""Policies by name."""

import pickle

import pytest

from pz_policymap.cli.errors import CommandError, UsageError
from pz_policymap.cli.named import object_named
from pz_policymap.cli.policies import entrants_named, policies_named, policy_names
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
        ("Needs", "cannot be made with these arguments: .*'weights'"),
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


def test_policies_named_factory_gets_its_arguments(tmp_path):
    (tmp_path / "v2").write_text("last")
    needs, loaded, constant = policies_named(
        ["tests.cli_bots:Move(2)", f"tests.cli_bots:loads({str(tmp_path / 'v2')!r})", "tests.cli_bots:always(move=4)"]
    )
    assert needs(None, "a", {}) == 2
    assert loaded is cli_bots.last_free
    assert constant(None, "a", {}) == 4


@pytest.mark.parametrize(
    "name",
    ["tests.cli_bots:always(move)", "tests.cli_bots:always(1", "tests.cli_bots:always(1).x", "tests.cli_bots:(1)"],
)
def test_policies_named_arguments_that_are_not_literals_raise(name):
    with pytest.raises(UsageError, match="must be module:function or module:factory"):
        policies_named([name])


def test_policies_named_factory_of_a_non_policy_raises():
    with pytest.raises(UsageError, match="must be a function of observation, agent and info, got {'a': 1}"):
        policies_named(["builtins:dict(a=1)"])


def test_entrants_named_folder_holds_one_entrant_per_file(tmp_path):
    for name in ("v1.txt", "v2.txt"):
        (tmp_path / name).write_text("first")
    entrants = entrants_named(["random"], str(tmp_path), "tests.cli_bots:loads")
    assert list(entrants) == ["random", "v1", "v2"]
    assert entrants["v2"].load() is cli_bots.first_free
    assert entrants["v2"].version == entrants["v1"].version != None  # noqa: E711
    assert pickle.loads(pickle.dumps(entrants["v1"])).load() is cli_bots.first_free


def test_entrants_named_invalid_folder_raises(tmp_path):
    loader = "tests.cli_bots:loads"
    for folder, function, message in (
        (str(tmp_path), None, "--checkpoints and --loader must be given together"),
        (None, loader, "--checkpoints and --loader must be given together"),
        (str(tmp_path), loader, "--checkpoints: folder must hold files that match"),
    ):
        with pytest.raises(UsageError, match=message):
            entrants_named([], folder, function)
    (tmp_path / "random.zip").touch()
    with pytest.raises(UsageError, match="holds a file with the name of another policy: random"):
        entrants_named(["random"], str(tmp_path), loader)


def test_an_object_is_named_by_module_and_name():
    with pytest.raises(UsageError, match="policy must be written as module:name, got 'random'"):
        object_named("policy", "random")
