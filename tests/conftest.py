"""What all tests share: environments are played without a screen and without advice on PettingZoo's own modules."""

import os

import pytest

os.environ["SDL_VIDEODRIVER"] = "dummy"  # pygame reads it when the first environment imports it

settings.register_profile("tests", deadline=None)  # machines are shared: no test is timed
settings.load_profile("tests")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("filterwarnings", "ignore:The old environment creation API:DeprecationWarning")
    config.addinivalue_line("markers", "xdist_group(name): tests that pytest-xdist is to run in one process")
    if getattr(config.option, "dist", None) == "load":
        config.option.dist = "loadgroup"  # as "load", but tests that count one another stay together
