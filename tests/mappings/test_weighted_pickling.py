"""Pickling of `Weighted`: a weights callable reads a copy in another process, and says so."""

import copy
import functools
import multiprocessing
import os
import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import cloudpickle
import numpy as np
import pytest

import pz_policymap as pm

PAYOFF = pm.Payoff(3)
ENVIRON = {**os.environ, "PYTHONPATH": str(Path(pm.__file__).parents[1])}


def module_function():
    return pm.pfsp(PAYOFF.win_rates[0])


class Rule:
    def __init__(self):
        self.payoff = pm.Payoff(3)

    def __call__(self):
        return pm.pfsp(self.payoff.win_rates[0])

    def method(self):
        return self()


def closure():
    payoff = pm.Payoff(3)
    return lambda: pm.pfsp(payoff.win_rates[0])


CALLABLES = {
    "closure": closure(),
    "module function": module_function,
    "callable object": Rule(),
    "bound method": Rule().method,
    "partial": functools.partial(pm.pfsp, [0.5, 0.5]),
}


@pytest.mark.parametrize("name", CALLABLES)
@pytest.mark.parametrize("nest", [lambda rule: rule, lambda rule: pm.Focal(pm.Fixed(0), pm.Shared(rule)), pm.Teams])
def test_weights_callable_of_any_kind_when_pickled_warns(name, nest):
    mapping = nest(pm.Weighted(CALLABLES[name]))
    with pytest.warns(UserWarning, match="does not see new results; send numbers with set_mapping"):
        pickled = cloudpickle.dumps(mapping)
    assert pickle.loads(pickled).num_policies == mapping.num_policies


WORKERS = """
import sys, warnings
import gymnasium
import pz_policymap as pm
from pettingzoo.classic import rps_v2

payoff = pm.Payoff(3)
numbers = {"numbers": [0.5, 0.5], "callable": lambda: pm.pfsp(payoff.win_rates[0, 1:])}[sys.argv[1]]
rule = pm.Focal(pm.Fixed(0), pm.Weighted(numbers, policies=[1, 2]))


def make():
    env = pm.wrap(rps_v2.parallel_env(), rule)
    return pm.LearnerEnv(env, {1: "random", 2: "random"})


if __name__ == "__main__":
    envs = gymnasium.vector.AsyncVectorEnv([make], context="fork")
    envs.reset(seed=0)
    envs.close()
"""


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system does not fork")
@pytest.mark.parametrize(("weights", "warned"), [("numbers", False), ("callable", True)])
def test_weights_callable_in_forked_workers_warns_at_its_first_call(tmp_path, weights, warned):
    script = tmp_path / "workers.py"
    script.write_text(WORKERS, encoding="utf-8")
    run = subprocess.run(
        [sys.executable, str(script), weights], capture_output=True, text=True, check=True, env=ENVIRON
    )
    assert ("does not see new results; send numbers with set_mapping" in run.stderr) == warned


@pytest.mark.parametrize("weights", [[0.5, 0.5], np.eye(2)])
def test_weights_of_numbers_when_pickled_do_not_warn(weights):
    mapping = pm.Weighted(weights)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pickle.loads(pickle.dumps(mapping)) == mapping
        from_pool = pm.SnapshotPool(["a"], fixed=["b"]).last_mapping
        assert pickle.loads(pickle.dumps(from_pool)) == from_pool


def test_weights_callable_copied_in_one_process_does_not_warn():
    ledger = pm.Payoff(3)
    mapping = pm.Focal(pm.Fixed(0), pm.Weighted(lambda: pm.pfsp(ledger.win_rates[0]), policies=3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert copy.deepcopy(mapping) == copy.copy(mapping) == mapping
        assert copy.copy(mapping.background) is mapping.background


def test_call_in_a_forked_process_warns():
    rule = pm.Weighted(module_function)
    object.__setattr__(rule, "_process", -1)  # as if this process had been forked from another one
    with pytest.warns(UserWarning, match="is called in another process"):
        rule.bind(lambda function: function())
