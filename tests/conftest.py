"""What all tests share: environments are played without a screen and without advice on PettingZoo's own modules."""

import os

import pytest

os.environ["SDL_VIDEODRIVER"] = "dummy"  # pygame reads it when the first environment imports it


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("filterwarnings", "ignore:The old environment creation API:DeprecationWarning")
