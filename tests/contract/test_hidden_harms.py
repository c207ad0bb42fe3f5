"""Side effects that are easily missed: shared infos, warnings, races between threads, and global generators."""
# ruff: noqa: NPY002  # tests that the global generators are not used

import copy
import os
import pickle
import random
import signal
import sys
import threading
from functools import partial

import numpy as np
import pytest

import pz_policymap as pm
from pz_policymap.wrappers.autoreset import Autoreset
from tests.contract.test_faults import MAKERS, WRAPPERS, tell, wrapped
from tests.contract_model import LEAVES, MATRICES, NUM_POLICIES, turn
from tests.puppets import INFOS, SHARED, PuppetVector

RULES = [
    *(rule for rule in LEAVES if not isinstance(rule, pm.Fixed)),
    pm.Fixed({"a": 0, "b": 1, "agent_0": 2}),
    *(pm.Focal(pm.Uniform(3), matrix) for matrix in MATRICES),
    pm.Teams(pm.Uniform(4), team_of={"a": "red", "b": "blue", "agent_0": "red", "agent_1": "blue"}),
    pm.Roles({"a": pm.Uniform(4), "b": pm.Shared(pm.Uniform([4, 5])), "agent": pm.Uniform(6)}),
]


def season(name, rule, seed=0, episodes=6, pickled=True):
    """Runs some episodes that use every feature, and returns their assignments."""
    env = wrapped(name, rule, seed=seed, env_index=3, resample_every=2)
    payoff, statistics = pm.Payoff(NUM_POLICIES, decay=0.9), pm.PolicyStatistics(NUM_POLICIES)
    outer = env if name == "single" else pm.record_results(env, payoff, statistics)
    played = []
    for episode in range(episodes):
        tell(env, infos=sorted(INFOS)[episode % len(INFOS)])
        outer.reset(seed=episode)
        played.append(np.array(env.assigner.policy_ids).tolist())
        tell(env, live=[], dies=["a", "b"], over=True, ends=range(4), rewards=[0.1, 0.2, 0.3, 0.4])
        if name == "aec":
            outer.step(0), outer.last()
        else:
            outer.step({"a": 0, "b": 0} if name == "parallel" else np.zeros(4, int))
        if pickled:
            copied = copy.deepcopy(env.assigner), pickle.loads(pickle.dumps(env.assigner.state_dict()))
            copied[0].load_state_dict(copied[1])
    payoff.win_rates, payoff.mean_returns, payoff.ratings(), statistics.scalars()
    pm.pfsp(payoff.win_rates), pm.latest(NUM_POLICIES, 3), pm.delta_uniform(NUM_POLICIES, 0.5)
    return played


@pytest.fixture(autouse=True)
def _weights_as_they_were():
    turn()


class TestInfos:
    @WRAPPERS
    @pytest.mark.parametrize("infos", ["empty", "shared", "filled"])
    def test_infos_are_not_shared_between_calls_agents_or_the_environment(self, name, infos):
        env, seen = wrapped(name), []
        tell(env, infos=infos)
        for _ in range(3):
            answers = [env.reset()]
            for _ in range(3):
                if name == "aec":
                    env.step(0)
                    answers += [(env.infos,), (env.infos,), env.last()[-1:], ({"again": env.last()[-1]},)]
                else:
                    answers.append(env.step({"a": 0, "b": 0} if name == "parallel" else np.zeros(4, int)))
            for infos_of_all in (answer[-1] for answer in answers if answer is not None):
                inner = infos_of_all.values() if name in ("aec", "parallel") else []
                seen += [infos_of_all, *(info for info in inner if isinstance(info, dict))]
        assert len({id(info) for info in seen}) == len(seen)
        assert not any(info is SHARED for info in seen)
        assert SHARED == {"z": 1}


@pytest.mark.filterwarnings("error")
class TestWarnings:
    @pytest.mark.parametrize("rule", RULES)
    @WRAPPERS
    def test_normal_use_gives_no_warnings(self, name, rule):
        season(name, rule)

    @pytest.mark.parametrize("mode", Autoreset)
    def test_autoreset_modes_give_no_warnings(self, mode):
        env = pm.wrap(PuppetVector(4, mode), 4)
        log = []
        outer = pm.record_results(env, log.append)
        tell(env)
        outer.reset(seed=[1, 2, 3, 4])
        for _ in range(5):
            tell(env, ends=[0, 3])
            outer.step(np.zeros(4, int))
        outer.reset(options={"reset_mask": np.array([True, False, False, True]), "policy_ids": 1})
        assert log


@pytest.fixture
def alternating():
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def in_threads(*targets):
    """Runs functions in parallel threads until all have returned."""
    threads = [threading.Thread(target=target) for target in targets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.usefixtures("alternating")
class TestThreads:
    @pytest.mark.parametrize("rule", RULES)
    def test_environments_in_threads_get_the_assignments_of_each_alone(self, rule):
        plays = [(name, seed) for seed in (0, 1) for name in MAKERS]
        alone = [season(name, rule, seed, pickled=False) for name, seed in plays]
        together, errors = [None] * len(plays), []
        start = threading.Barrier(len(plays))

        def play(i):
            start.wait()
            try:
                together[i] = season(plays[i][0], rule, plays[i][1], pickled=False)
            except Exception as error:  # noqa: BLE001  # whatever it is
                errors.append(error)

        in_threads(*(partial(play, i) for i in range(len(plays))))
        assert errors == []
        assert together == alone

    @pytest.mark.parametrize("make", [pm.Payoff, partial(pm.Payoff, decay=0.5), pm.PolicyStatistics])
    def test_a_ledger_that_threads_share_has_all_their_episodes(self, make):
        ledger, threads, episodes = make(2), 4, 500
        game, start = pm.Episode([0, 1], [1.0, 0.0], lengths=[1, 1]), threading.Barrier(threads)

        def play():
            start.wait()
            for _ in range(episodes):
                ledger.record(game)
                ledger.grow(ledger.num_policies)

        in_threads(*[play] * threads)
        assert ledger.episodes.max() == threads * episodes

    @pytest.mark.parametrize(
        ("make", "read"),
        [
            *((pm.Payoff, name) for name in ("wins", "games", "decayed", "win_rates", "mean_returns")),
            *((pm.PolicyStatistics, name) for name in ("mean_return", "scalars")),
        ],
    )
    def test_a_ledger_may_be_read_while_it_grows_in_another_thread(self, make, read):
        ledger, over = make(2), threading.Event()

        def grow():
            while not over.is_set() and ledger.num_policies < 200:
                ledger.grow(ledger.num_policies + 1)

        growing = threading.Thread(target=grow)
        growing.start()
        try:
            while growing.is_alive():
                value = getattr(ledger, read)
                if callable(value):
                    value()
        finally:
            over.set()
            growing.join()

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="POSIX forks")
    @pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
    def test_ledger_forked_while_a_thread_records_does_not_deadlock(self):
        payoff, over = pm.Payoff(2), threading.Event()

        def play():
            while not over.is_set():
                payoff.record(pm.Episode([0, 1], [1.0, 0.0]))

        playing = threading.Thread(target=play)
        playing.start()
        try:
            for _ in range(20):
                child = os.fork()
                if not child:
                    signal.alarm(20)  # ends it where it hangs
                    before = payoff.wins[0, 1]
                    try:
                        payoff.record(pm.Episode([0, 1], [1.0, 0.0]))
                    finally:
                        os._exit(int(payoff.wins[0, 1] != before + 1))
                assert os.waitpid(child, 0)[1] == 0
        finally:
            over.set()
            playing.join()


class TestGlobalRandomness:
    @pytest.mark.parametrize("rule", RULES)
    @WRAPPERS
    def test_global_generators_are_neither_read_nor_changed(self, name, rule):
        played = []
        for seed in (1, 2):
            random.seed(seed), np.random.seed(seed)
            before = random.getstate(), str(np.random.get_state())
            played.append(season(name, rule))
            assert (random.getstate(), str(np.random.get_state())) == before
        assert played[0] == played[1]

    @pytest.mark.parametrize("rule", RULES)
    @WRAPPERS
    def test_run_with_raising_global_generators_succeeds(self, name, rule, monkeypatch):
        expected = season(name, rule)

        def raises(*arguments, **settings):
            raise AssertionError("the global generators were used")

        for module, holder in ((random, random._inst), (np.random, np.random.mtrand._rand)):
            for function in dir(module):
                if getattr(getattr(module, function), "__self__", None) is holder:
                    monkeypatch.setattr(module, function, raises)
        monkeypatch.setattr(np.random, "default_rng", raises)  # an unseeded run would draw different entropy each time
        with pytest.raises(AssertionError):
            random.random()
        with pytest.raises(AssertionError):
            np.random.random()
        assert season(name, rule) == expected

    @WRAPPERS
    def test_unseeded_run_reads_entropy_from_the_operating_system_only(self, name):
        seeds = set()
        for _ in range(3):
            random.seed(0), np.random.seed(0)
            env = wrapped(name, seed=None)
            env.reset()
            seeds.add(env.assigner.seed)
        assert len(seeds) == 3
