"""Mappings on one line are what the constructors make, and nothing else can be written."""

import pytest

import pz_policymap as pm
from pz_policymap.cli.errors import UsageError
from pz_policymap.cli.mapping_text import NAMES, mapping_from
from tests import cli_bots


@pytest.mark.parametrize(
    ("text", "mapping"),
    [
        ("8", pm.Uniform(8)),
        ("uniform:8", pm.Uniform(8)),
        ("Uniform(8)", pm.Uniform(8)),
        ("UNIFORM:8,mix=False", pm.Uniform(8, mix=False)),
        ("uniform:8,replace=false", pm.Uniform(8, replace=False)),
        ("uniform:8,false", pm.Uniform(8, False)),
        ("uniform:4,5,6", pm.Uniform([4, 5, 6])),
        ("uniform:[4,5]", pm.Uniform([4, 5])),
        ("weighted:3,0.5,1", pm.Weighted([3, 0.5, 1])),
        ("weighted:[3,1]", pm.Weighted([3, 1])),
        ("fixed:3", pm.Fixed(3)),
        ("fixed:{a:0,'b':3}", pm.Fixed({"a": 0, "b": 3})),
        ("byenvindex:4", pm.ByEnvIndex(4)),
        ("by-env-index:4", pm.ByEnvIndex(4)),
        ("shared:weighted:1,2", pm.Shared(pm.Weighted([1, 2]))),
        ("teams:uniform:4", pm.Teams(pm.Uniform(4))),
        ("teams:shared:uniform:4,mix=false", pm.Teams(pm.Shared(pm.Uniform(4, mix=False)))),
        ("teams:uniform(4),team_of={a:x,b:y}", pm.Teams(pm.Uniform(4), {"a": "x", "b": "y"})),
        ("roles:{adversary:uniform(4),agent:fixed(7)}", pm.Roles({"adversary": pm.Uniform(4), "agent": pm.Fixed(7)})),
        ("focal:fixed(0),uniform(4),rotate=false", pm.Focal(pm.Fixed(0), pm.Uniform(4), rotate=False)),
        ("focal:uniform([0,1]),weighted([[0,1],[1,0]])", pm.Focal(pm.Uniform([0, 1]), pm.Weighted([[0, 1], [1, 0]]))),
        ("perworker:8,2", pm.PerWorker(8, 2, envs_per_worker=6)),
        ("perworker:8,2,3", pm.PerWorker(8, 2, 3)),
        ("balanced:8", pm.Balanced(8, num_envs=6)),
        ("balanced:2,weights=[3,1]", pm.Balanced(2, num_envs=6, weights=[3, 1])),
        ("round-robin:3,order=seeded", pm.RoundRobin(3, num_envs=6, order="seeded")),
        ("roundrobin:3,2", pm.RoundRobin(3, 2)),
        ("tests.cli_bots:learner_first", pm.FromFunction(cli_bots.learner_first)),
        ("tests.cli_bots:NUMBER", pm.Uniform(3)),
    ],
)
def test_a_line_is_the_constructor_with_its_arguments(text, mapping):
    assert mapping_from(text, num_envs=6) == mapping


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("uniform", "'uniform' is no mapping: write name:arguments"),
        ("uniform:", r"Uniform\(\): missing a required argument: 'policies'; its arguments are \(policies, mix"),
        ("uniform:0", r"Uniform\(0\): policies must be from 1"),
        ("fixed:0,3", r"Fixed\(0, 3\): too many positional arguments; its arguments are \(policy\)"),
        ("uniform:4,mixed=true", r"Uniform\(4, mixed=True\): got an unexpected keyword argument 'mixed'"),
        ("focal:fixed:0,uniform:4", "cannot be read: write name:arguments"),
        ("teams:nix(4)", "'nix' is no mapping; names are uniform, weighted"),
        ("uniform:open('x')", "'open' is no mapping"),
        ("roles:{[1]: uniform(2)}", r"'{\[1\]: uniform\(2\)}' is neither a mapping nor a number"),
        ("uniform:{[1]}", "is neither a mapping nor a number"),
        ("uniform:(lambda: 4)()", "is neither a mapping nor a number"),
        ("uniform:4 if 1 else 5", "is neither a mapping nor a number"),
        ("uniform(4", "cannot be read"),
        ("nix:8", "no module 'nix'.*and mappings are called uniform"),
        ("tests.nix:8", "no module 'tests.nix'"),
        ("tests.cli_bots:nix", "module 'tests.cli_bots' has no 'nix'"),
        ("tests.cli_bots:Remembers", "must be a PolicyMapping or a function, got the class Remembers"),
        ("tests.cli_bots:", "must be written as module:name"),
    ],
)
def test_what_is_no_mapping_is_refused_with_what_would_be(text, message):
    with pytest.raises(UsageError, match=message):
        mapping_from(text)


def test_every_mapping_of_the_package_has_a_name_but_the_one_that_is_made_of_a_function():
    mappings = {
        name.lower()
        for name in pm.__all__
        if isinstance(getattr(pm, name), type) and issubclass(getattr(pm, name), pm.PolicyMapping)
    }
    assert set(NAMES) == mappings - {"policymapping", "fromfunction"}
