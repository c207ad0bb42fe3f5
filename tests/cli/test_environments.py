"""Environments by name: a module, a function, or an id of PettingZoo's registry."""

import pickle
import sys

import pettingzoo
import pytest
from pettingzoo.utils.env import AECEnv, ParallelEnv

from pz_policymap.cli.environments import EnvName, settings_from
from pz_policymap.cli.errors import CommandError, UsageError

needs_registry = pytest.mark.skipif(not hasattr(pettingzoo, "make"), reason="PettingZoo 1.25 has no registry")


@pytest.mark.parametrize(
    ("name", "api", "kind", "apis"),
    [
        ("mpe2.simple_tag_v3", None, ParallelEnv, ["parallel", "aec"]),
        ("mpe2.simple_tag_v3", "aec", AECEnv, ["aec"]),
        ("mpe2.simple_tag_v3:env", None, AECEnv, ["aec"]),
        ("mpe2.simple_tag_v3:parallel_env", None, ParallelEnv, ["parallel"]),
        ("pettingzoo.classic.tictactoe_v3", None, AECEnv, ["aec"]),
        ("tests.stub_envs:StubParallel", None, ParallelEnv, ["parallel"]),
        pytest.param("classic/rps-v2", None, ParallelEnv, ["parallel", "aec"], marks=needs_registry),
        pytest.param("classic/rps_v2", "aec", AECEnv, ["aec"], marks=needs_registry),
        pytest.param("classic/tictactoe", None, AECEnv, ["aec"], marks=needs_registry),
    ],
)
def test_env_name_makes_the_environment_after_pickling_too(name, api, kind, apis):
    made = EnvName(name, api)
    assert isinstance(made(), kind)
    assert isinstance(pickle.loads(pickle.dumps(made))(), kind)
    assert made.apis() == apis


def test_settings_from_literal_or_string():
    words = ["N=5", "local=False", "map=4x4", "name=", "text='5'", "sizes=[1, 2]", "rule=a=b"]
    assert settings_from(words) == {
        "N": 5,
        "local": False,
        "map": "4x4",
        "name": "",
        "text": "5",
        "sizes": [1, 2],
        "rule": "a=b",
    }


def test_env_name_passes_settings():
    env = EnvName("mpe2.simple_spread_v3", settings=settings_from(["N=5", "max_cycles=7"]))()
    assert env.possible_agents == [f"agent_{i}" for i in range(5)]


@pytest.mark.parametrize(
    ("name", "api", "settings", "error", "message"),
    [
        ("tests.nix", None, {}, UsageError, "there is no module 'tests.nix': it must be installed, or be in"),
        ("nix.env", None, {}, UsageError, "there is no module 'nix.env'"),
        (
            "tests.stub_envs",
            None,
            {},
            UsageError,
            "has no parallel_env and no env; name a function as tests.stub_envs:",
        ),
        ("tests.stub_envs:Nix", None, {}, UsageError, "has no 'Nix'"),
        ("pettingzoo.classic.tictactoe_v3", "parallel", {}, UsageError, "has no parallel_env; name"),
        ("tests.stub_envs:StubAEC", "parallel", {}, UsageError, "is a StubAEC, expected pettingzoo's ParallelEnv"),
        (
            "gymnasium:Space",
            None,
            {},
            UsageError,
            "is a Space, expected pettingzoo's ParallelEnv or pettingzoo's AECEnv",
        ),
        ("mpe2.simple_tag_v3", None, {"nix": 1}, CommandError, "cannot be made with {'nix': 1}: .*'nix'"),
        pytest.param(
            *("classic/tictactoe-v3", None, {"nix": 1}, CommandError, "cannot be made with {'nix': 1}: .*'nix'"),
            marks=needs_registry,
        ),
        pytest.param(
            *("classic/tictacto-v3", None, {}, UsageError, "has no aec .*; did you mean classic/tictactoe-v3"),
            marks=needs_registry,
        ),
        pytest.param(
            "tictactoe_v3",
            None,
            {},
            UsageError,
            "no module .*; did you mean classic/tictactoe-v3",
            marks=needs_registry,
        ),
        pytest.param("atari/pong-v3", None, {}, CommandError, "needs a missing package", marks=needs_registry),
    ],
)
def test_env_name_invalid_raises(name, api, settings, error, message):
    with pytest.raises(error, match=message) as raised:
        EnvName(name, api, settings)()
    assert type(raised.value) is error


def test_env_name_without_registry_refuses_ids(monkeypatch):
    for name in ("aec_registry", "parallel_registry"):
        monkeypatch.setattr(pettingzoo, name, {}, raising=False)
    with pytest.raises(UsageError, match=r"has no registry for 'classic/rps-v2'; name a module"):
        EnvName("classic/rps-v2")()


@pytest.mark.parametrize("word", ["max_cycles", "=5", "a b=1"])
def test_settings_from_invalid_word_raises(word):
    with pytest.raises(UsageError, match="--set takes name=value"):
        settings_from([word])


def test_module_named_finds_the_current_folder_and_reports_failures(tmp_path, monkeypatch):
    (tmp_path / "of_mine_here.py").write_text("from tests.stub_envs import StubAEC as env\n")
    (tmp_path / "of_mine_broken.py").write_text("1 / 0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [path for path in sys.path if path])
    assert isinstance(EnvName("of_mine_here")(), AECEnv)
    with pytest.raises(CommandError, match="'of_mine_broken' cannot be imported: ZeroDivisionError: division"):
        EnvName("of_mine_broken")()


@pytest.mark.parametrize(
    ("line", "error", "message"),
    [
        ("import nowhere_to_be_found", CommandError, "cannot be imported: No module named 'nowhere_to_be_found'"),
        ("import of_mine.nowhere", CommandError, "cannot be imported: No module named 'of_mine.nowhere'"),
        ("1 / 0", CommandError, "'of_mine.env' cannot be imported: ZeroDivisionError"),
        ("", UsageError, "there is no module 'of_mine.env'"),
    ],
)
def test_module_named_distinguishes_failing_from_missing_packages(line, error, message, tmp_path, monkeypatch):
    (tmp_path / "of_mine").mkdir()
    (tmp_path / "of_mine" / "__init__.py").write_text(line)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "of_mine", raising=False)
    with pytest.raises(error, match=message) as raised:
        EnvName("of_mine.env")()
    assert type(raised.value) is error


@pytest.mark.parametrize("name", ["", ".", "..tests", "tests..stub_envs"])
def test_module_named_invalid_name_raises(name):
    with pytest.raises(UsageError, match="there is no module"):
        EnvName(name)()
