"""A run that is killed at random moments and resumed equals one that was never stopped, for every mapping."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import pz_policymap as pm
from tests import killed_run

EPISODES = 60
KILLS = 20


def start(folder):
    script = Path(killed_run.__file__)
    process = subprocess.Popen([sys.executable, str(script), str(folder), str(EPISODES)], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    return process


def contents(folder):
    return {path.stem: pm.load(path) for path in sorted(folder.glob("[!.]*.npz"))}


def test_killed_and_resumed_run_equals_an_uninterrupted_one(tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    whole.mkdir(), killed.mkdir()
    assert start(whole).wait() == 0
    expected = contents(whole)

    moments, progress = random.Random(0), []
    for _ in range(KILLS):
        process = start(killed)
        process.stdout.read(moments.randint(1, 2 * EPISODES * len(expected) // KILLS))  # so many episodes later
        time.sleep(moments.uniform(0, 0.01))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        progress.append(sum(len(states["matchups"]["played"]) for states in contents(killed).values()))
    assert start(killed).wait() == 0

    assert len(set(progress)) > KILLS // 2  # the kills are spread over the run
    resumed = contents(killed)
    assert set(resumed) == set(expected) == set(killed_run.mappings(pm.Payoff(killed_run.NUM_POLICIES)))
    for name, states in expected.items():
        assert len(states["matchups"]["played"]) == EPISODES
        assert resumed[name]["matchups"] == states["matchups"], name
        assert resumed[name]["assigner"] == states["assigner"], name
        np.testing.assert_array_equal(resumed[name]["payoff"]["table"], states["payoff"]["table"], err_msg=name)
