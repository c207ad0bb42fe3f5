"""Settings of all tests: no screen, no time limits for hypothesis, no warnings about PettingZoo's own modules."""

from __future__ import annotations

import os

import pytest

from pz_policymap.mappings.base import PolicyMapping

try:
    from hypothesis import HealthCheck, settings
except ImportError:  # jobs for frameworks do not install hypothesis
    settings = None
else:
    settings.register_profile("tests", deadline=None)  # machines are shared, so no test is timed
    settings.register_profile("long", deadline=None, max_examples=2000)
    settings.register_profile(  # the same few examples for every mutant
        "mutants", deadline=None, max_examples=40, derandomize=True, database=None, suppress_health_check=[*HealthCheck]
    )
    settings.load_profile("tests")

os.environ["SDL_VIDEODRIVER"] = "dummy"  # pygame reads it when the first environment imports it


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="run the tests of scale and of long runs at full length")


@pytest.fixture(scope="session")
def long_run(request: pytest.FixtureRequest) -> bool:
    """Whether to run the long form of tests that have one: minutes instead of seconds."""
    return bool(request.config.getoption("--long"))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("filterwarnings", "ignore:The old environment creation API:DeprecationWarning")
    if settings is not None and config.getoption("--long"):
        settings.load_profile("long")
    if getattr(config.option, "dist", "no") == "load":
        config.option.dist = "loadfile"  # tests of one file share fixtures and counts


def pytest_make_parametrize_id(val: object) -> str | None:
    """Names mappings in test ids by their text form."""
    return repr(val) if isinstance(val, PolicyMapping) else None
