"""What all tests share: environments are played without a screen and without advice on PettingZoo's own modules."""

import os

import pytest

from pz_policymap.mappings.base import PolicyMapping, describe

os.environ["SDL_VIDEODRIVER"] = "dummy"  # pygame reads it when the first environment imports it


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("filterwarnings", "ignore:The old environment creation API:DeprecationWarning")


def pytest_make_parametrize_id(val: object) -> str | None:
    """Names mappings in test ids by what every process calls them: their repr may hold an address."""
    return describe(val) if isinstance(val, PolicyMapping) else None
