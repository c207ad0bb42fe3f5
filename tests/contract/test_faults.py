"""External faults: environments, mappings and weights that raise, full disks, and invalid files."""

import errno
import io
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
import tracemalloc
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import VectorEnv

import pz_policymap as pm
from pz_policymap.wrappers.autoreset import Autoreset
from tests.puppets import PlannedError, PuppetAEC, PuppetEnv, PuppetParallel, PuppetVector

PLAN = {
    "live": ["a", "b"],
    "infos": "empty",
    "fail": None,
    "rewards": [1.0] * 4,
    "truncated": False,
    "dies": [],
    "comes": [],
    "turn": 1,
    "over": False,
    "ends": [],
}
MAKERS = {
    "aec": lambda: PuppetAEC(["a", "b"]),
    "parallel": lambda: PuppetParallel(["a", "b"]),
    "single": PuppetEnv,
    "vector": lambda: PuppetVector(4, Autoreset.NEXT_STEP),
}
WRAPPERS = pytest.mark.parametrize("name", MAKERS)


def wrapped(name, rule=1000, **settings):
    bare = MAKERS[name]()
    extra = {"agents": ["a", "b"]} if name == "vector" else {}
    env = pm.wrap(bare, rule, **{"resample_every": 1, "seed": 0, **settings}, **extra)
    tell(env)
    return env


def tell(env, **plan):
    vars(env.unwrapped.plan).update(PLAN, **plan)


def step(env):
    """Steps once, and returns infos."""
    if isinstance(env, pm.PolicyMapAEC):
        env.step(0)
        return env.infos
    if isinstance(env, pm.PolicyMapParallel):
        return env.step(dict.fromkeys(env.agents, 0))[-1]
    return env.step(np.zeros(4, int) if isinstance(env, VectorEnv) else 0)[-1]


def who(env):
    return np.asarray(env.policy_ids).tolist() if isinstance(env, pm.PolicyMapVector) else env.policy_ids


class TestEnvironmentsThatRaise:
    @WRAPPERS
    @pytest.mark.parametrize("when", ["reset", "step"])
    def test_assignments_after_a_failure_equal_those_without_it(self, name, when):
        env, twin = wrapped(name), wrapped(name)
        for episode in range(6):
            if when == "reset" and episode % 2:
                tell(env, fail="early")
                with pytest.raises(PlannedError):
                    env.reset()
            tell(env), env.reset(), twin.reset()
            for _ in range(2):
                if when == "step":
                    tell(env, fail=True)
                    with pytest.raises(PlannedError):
                        step(env)
                    tell(env)
                assert str(step(env)) == str(step(twin))
            assert who(env) == who(twin)
            assert str(env.state_dict()) == str(twin.state_dict())


class TestRulesThatRaise:
    @WRAPPERS
    def test_mapping_that_raises_at_a_draw_keeps_the_old_assignment_until_the_next_reset(self, name):
        calls = []

        def moody(agents, draw):
            calls.append(draw.episode)
            if draw.episode == 2 and calls.count(2) == 1:
                raise OSError("the league is away")
            return {agent: 10 * draw.episode + i for i, agent in enumerate(agents)}

        env = wrapped(name, moody)
        env.reset(), env.reset()
        before, played = str(env.state_dict()), who(env)
        with pytest.raises(
            ValueError, match=r"FromFunction.*moody.*environments? 0.*episode 2: OSError.*league is away"
        ):
            env.reset()
        assert (str(env.state_dict()), who(env)) == (before, played)
        with pytest.raises(ResetNeeded, match="step cannot be called: .* reset"):  # of an episode without a draw
            step(env)
        for read in ("infos", "last") if isinstance(env, pm.PolicyMapAEC) else ():
            with pytest.raises(
                ResetNeeded,
                match=f"{read} cannot be .*: the last reset or step failed, so reset the whole environment first",
            ):
                getattr(env, read)()
        assert (str(env.state_dict()), who(env)) == (before, played)
        env.reset()
        step(env)
        assert env.assigner.episode.tolist() == [2] * env.assigner.num_envs
        assert sorted({int(policy) // 10 for policy in env.assigner.policy_ids.ravel()}) == [2]

    @WRAPPERS
    @pytest.mark.parametrize(
        "bad", [[float("nan"), 1.0], [float("inf"), 1.0], [-1.0, 1.0], [0.0, 0.0], ["x", "y"], None]
    )
    def test_invalid_weights_in_a_run_raise_and_change_nothing(self, name, bad):
        said = [0.0, 1.0]
        env = wrapped(name, pm.Weighted(lambda: said, policies=2), resample_every=2)
        env.reset(), env.reset()
        before, played = str(env.state_dict()), who(env)
        said = bad
        with pytest.raises((ValueError, TypeError), match=r"Weighted.*episode 2: weights must"):
            env.reset()
        assert (str(env.state_dict()), who(env)) == (before, played)
        said = [1.0, 0.0]
        env.reset()
        assert not env.assigner.policy_ids.any()

    def test_ledger_has_every_finished_episode_despite_failures(self):
        log, said = [], [0.0, 1.0]
        rule = pm.Weighted(lambda: said, policies=2)
        bare = wrapped("parallel", rule)
        env = pm.record_results(bare, log.append)
        for episode in range(5):
            said = [float("nan"), 1.0] if episode % 2 else [0.0, 1.0]
            if episode % 2:
                with pytest.raises(ValueError, match="weights must be finite"):
                    env.reset()
                with pytest.raises(ResetNeeded):
                    env.step({"a": 0, "b": 0})
                said = [1.0, 0.0]
            tell(bare), env.reset()
            tell(bare, live=[]), env.step({"a": 0, "b": 0})
        assert [episode.policies for episode in log] == [(1, 1), (0, 0)] * 2 + [(1, 1)]
        assert [episode.lengths for episode in log] == [(1, 1)] * 5

    @pytest.mark.parametrize("dtype", [">i8", ">u4", "<i8", "i1"])
    def test_policies_and_rows_in_big_endian_order_are_read_correctly(self, dtype):
        class Foreign(pm.PolicyMapping):
            def __init__(self, number):
                self.number = number

            def assign(self, draw):
                return np.full((draw.num_envs, draw.num_seats), self.number, dtype)

        assigner = pm.PolicyAssigner(Foreign(5), ["a"], num_envs=2, seed=0)
        assert assigner.begin_episodes(np.array([1], dtype)).tolist() == [[-1], [5]]
        with pytest.raises(ValueError, match="rows must be from 0 to 1"):
            assigner.begin_episodes(np.array([2], dtype))
        if np.dtype(dtype).itemsize == 8:
            assigner.set_mapping(Foreign(2**56))  # a 1 where its bytes are read from the other end
            with pytest.raises(ValueError, match="must assign policies from 0 to 2147483647"):
                assigner.begin_episodes([0])


class TestStepsThatAreCutShort:
    @pytest.mark.parametrize("mode", [Autoreset.NEXT_STEP, Autoreset.SAME_STEP])
    @pytest.mark.parametrize(("error", "message"), [(KeyboardInterrupt, None), (ValueError, "info_key")])
    def test_vector_after_a_failed_draw_refuses_steps_until_reset(self, mode, error, message):
        interrupts = []

        def rule(agents, draw):
            if interrupts:
                raise interrupts.pop()
            return dict.fromkeys(agents, draw.episode)

        env = pm.wrap(PuppetVector(2, mode), rule, resample_every=1, seed=0)
        tell(env), env.reset()
        tell(env, ends=[0])
        if mode is Autoreset.NEXT_STEP:
            step(env), tell(env)
        if error is KeyboardInterrupt:
            interrupts.append(error)
        else:
            env.unwrapped._infos = lambda done: {"policy_id": np.zeros(2)}
        with pytest.raises(error, match=message):
            step(env)
        vars(env.unwrapped).pop("_infos", None)
        with pytest.raises(ResetNeeded, match="the last reset or step failed"):
            step(env)
        tell(env), env.reset()
        assert env.policy_ids.tolist() == [1, 1]
        step(env)

    def test_episode_that_ended_in_a_failed_step_is_over(self):
        env = wrapped("single")
        env.reset()
        env.info_key = "x"
        tell(env, over=True, infos="filled")
        with pytest.raises(ValueError, match="info_key"):
            step(env)
        assert env.state_dict()["episode"] == 0


class TestSinksThatRaise:
    @pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
    @pytest.mark.parametrize("mode", Autoreset)
    def test_sink_that_raises_does_not_affect_other_sinks(self, mode, error):
        first, last = [], []

        def unlucky(episode):
            if len(first) == 2:
                raise error("the disk is full")

        bare = pm.wrap(PuppetVector(4, mode), 1000, resample_every=1, seed=0)
        env = pm.record_results(bare, first.append, unlucky, last.append)
        tell(bare), env.reset()
        for episode in range(3):
            who_played = bare.policy_ids.tolist()
            tell(bare, ends=range(4))
            if episode:
                step(env)
            else:
                with pytest.raises(error, match="disk is full"):
                    step(env)
            assert [record.policies[0] for record in first[-4:]] == who_played
            tell(bare)
            if mode is Autoreset.DISABLED:
                env.reset(options={"reset_mask": np.ones(4, bool)})
            elif mode is Autoreset.NEXT_STEP:
                step(env)
        assert first == last
        assert [record.returns for record in first] == [(1.0,)] * 12

    @pytest.mark.parametrize(
        ("errors", "raised"),
        [
            ([OSError("first"), ValueError("second")], OSError),
            ([KeyboardInterrupt, OSError], KeyboardInterrupt),
            ([OSError, KeyboardInterrupt], KeyboardInterrupt),
        ],
    )
    @pytest.mark.parametrize("mode", Autoreset)
    def test_keyboard_interrupt_or_else_the_first_error_of_sinks_is_raised(self, mode, errors, raised):
        def unlucky(error, episode):
            raise error

        env = pm.record_results(
            pm.wrap(PuppetVector(2, mode), 4, seed=0), *(partial(unlucky, error) for error in errors)
        )
        tell(env), env.reset()
        tell(env, ends=[0, 1])
        with pytest.raises(raised):
            step(env)

    @pytest.mark.parametrize("name", ["aec", "parallel"])
    def test_an_episode_whose_first_sink_raises_reaches_the_others_once(self, name):
        log = []
        bare = wrapped(name)

        def unlucky(episode):
            raise OSError("the disk is full")

        env = pm.record_results(bare, unlucky, log.append)
        for _ in range(3):
            tell(bare), env.reset()
            tell(bare, live=[], dies=["a", "b"])
            with pytest.raises(OSError, match="disk is full"):
                env.step(0 if name == "aec" else {"a": 0, "b": 0})
            while env.agents:
                env.step(None)
        assert len(log) == 3


def ledger_of(version, size=120):
    """A ledger of about 100,000 equal numbers, so that a mixture of two files is visible."""
    payoff = pm.Payoff(size)
    state = payoff.state_dict()
    state["table"][:] = version
    payoff.load_state_dict(state)
    return payoff


def version_in(path):
    (version,) = np.unique(pm.load(path)["payoff"]["table"])
    return version


def run(code, *arguments):
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False
    )


class TestDisks:
    SAVE_TOO_MUCH = (
        "import resource, signal, sys\n"
        "import pz_policymap as pm\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "if len(sys.argv) > 2: resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)\n"
        "try: pm.save(sys.argv[1], payoff=pm.Payoff(120))\n"
        "except OSError as error: print(error.errno)\n"
    )

    @pytest.mark.skipif(sys.platform == "win32", reason="POSIX limits the size of a file")
    @pytest.mark.parametrize("limit", [0, 100, 4096, 100_000])
    def test_failed_write_keeps_the_old_file(self, tmp_path, limit):
        path = tmp_path / "run.npz"
        pm.save(path, payoff=ledger_of(1))
        assert run(self.SAVE_TOO_MUCH, path, limit).stdout == f"{errno.EFBIG}\n"
        assert version_in(path) == 1
        assert os.listdir(tmp_path) == ["run.npz"]

    def test_full_disk_keeps_the_old_file(self, tmp_path):
        mount = ["mount", "-t", "tmpfs", "-o", "size=1200k", "tmpfs", str(tmp_path)]
        if not shutil.which("mount") or subprocess.run(mount, capture_output=True, check=False).returncode:
            pytest.skip("no file system can be mounted here")
        try:
            path = tmp_path / "run.npz"
            pm.save(path, payoff=ledger_of(1))
            assert run(self.SAVE_TOO_MUCH, path).stdout == f"{errno.ENOSPC}\n"
            assert version_in(path) == 1
            assert os.listdir(tmp_path) == ["run.npz"]
        finally:
            subprocess.run(["umount", str(tmp_path)], check=True)

    @pytest.mark.parametrize("call", ["write", "fsync", "replace"])
    def test_any_failing_system_call_keeps_the_old_file(self, tmp_path, monkeypatch, call):
        path = tmp_path / "run.npz"
        pm.save(path, payoff=ledger_of(1))

        def full(*arguments, **settings):
            raise OSError(errno.ENOSPC, "No space left on device")

        place = {"write": (zipfile.ZipFile, "writestr"), "fsync": (os, "fsync"), "replace": (Path, "replace")}[call]
        with monkeypatch.context() as patched:
            patched.setattr(*place, full)
            with pytest.raises(OSError, match="No space left"):
                pm.save(path, payoff=ledger_of(2))
        assert version_in(path) == 1
        assert os.listdir(tmp_path) == ["run.npz"]
        pm.save(path, payoff=ledger_of(2))
        assert version_in(path) == 2

    @pytest.mark.skipif(sys.platform == "win32", reason="nothing is killed there")
    def test_process_killed_while_saving_leaves_a_valid_file(self, tmp_path):
        path = tmp_path / "run.npz"
        pm.save(path, payoff=ledger_of(1))
        code = (
            "import os, sys, time\n"
            "from tests.contract.test_faults import ledger_of, pm\n"
            "ledgers = [ledger_of(2), ledger_of(3)]\n"
            "def hang(file):\n"
            "    print('ready', flush=True)\n"
            "    time.sleep(60)\n"
            "if len(sys.argv) > 2: os.fsync = hang\n"
            "else: print('ready', flush=True)\n"
            "while True:\n"
            "    for ledger in ledgers: pm.save(sys.argv[1], payoff=ledger)\n"
        )
        half_done = 0
        for i in range(8):
            root = Path(__file__).parents[2]
            midway = ["midway"] * (i % 2)  # half of them are killed between writing and renaming, others at any moment
            command = [sys.executable, "-c", code, str(path), *midway]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=root)
            assert process.stdout.readline() == b"ready\n"
            time.sleep(0.0 if midway else 0.01 + 0.0037 * i)
            process.send_signal(signal.SIGKILL)
            process.communicate()
            assert version_in(path) in (1, 2, 3)
            half_done += len(os.listdir(tmp_path)) > 1
            for left in tmp_path.glob(".*"):
                left.unlink()
        assert half_done >= 4

    def test_concurrent_saves_leave_one_valid_file(self, tmp_path):
        path = tmp_path / "run.npz"
        code = (
            "import sys\n"
            "from tests.contract.test_faults import ledger_of, pm\n"
            "for i in range(25): pm.save(sys.argv[1], payoff=ledger_of(int(sys.argv[2]) + i))\n"
        )
        root = Path(__file__).parents[2]
        writers = [subprocess.Popen([sys.executable, "-c", code, str(path), who], cwd=root) for who in ("100", "200")]
        seen = set()
        while any(writer.poll() is None for writer in writers):
            if path.exists():
                seen.add(version_in(path))
        assert [writer.returncode for writer in writers] == [0, 0]
        assert seen <= {*range(100, 125), *range(200, 225)}
        assert version_in(path) in (124, 224)
        assert os.listdir(tmp_path) == ["run.npz"]


def archive_of(path, text, compression=zipfile.ZIP_STORED, **members):
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("state.json", text if isinstance(text, str) else json.dumps({"format": 1, "states": text}))
        for name, content in members.items():
            archive.writestr(f"{name.strip('_')}.npy", content)


def array_bytes(array, **settings):
    file = io.BytesIO()
    np.save(file, array, **settings)
    return file.getvalue()


class Bomb:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))


ONE = {"x": {"~array": 0}}
HUGE = array_bytes(np.zeros(3)).replace(b"(3,)", b"(3" + b"0" * 12 + b",)").replace(b" " * 12 + b"\n", b"\n")
HOSTILE = {
    "a pickle": lambda path: path.write_bytes(pickle.dumps(Bomb(path.parent / "exploded"))),
    "a pickle in it": lambda path: archive_of(
        path, ONE, _0=array_bytes(np.array([Bomb(path.parent / "exploded")], object), allow_pickle=True)
    ),
    "a pickle under the name of the text": lambda path: archive_of(
        path, pickle.dumps(Bomb(path.parent / "exploded"), protocol=0).decode()
    ),
    "a text that grows": lambda path: archive_of(path, json.dumps("x" * 10**7), zipfile.ZIP_DEFLATED),
    "an array that grows": lambda path: archive_of(path, ONE, zipfile.ZIP_DEFLATED, _0=array_bytes(np.zeros(10**6))),
    "an array that says it is huge": lambda path: archive_of(path, ONE, _0=HUGE),
    "an array of texts": lambda path: archive_of(path, ONE, _0=array_bytes(np.array(["x"]))),
    "an array of records": lambda path: archive_of(path, ONE, _0=array_bytes(np.zeros(2, "i4,f8"))),
    "an array of times": lambda path: archive_of(path, ONE, _0=array_bytes(np.zeros(2, "M8[s]"))),
    "an array of complex numbers": lambda path: archive_of(path, ONE, _0=array_bytes(np.zeros(2, complex))),
    "an array that is not there": lambda path: archive_of(path, ONE),
    "an array with a path": lambda path: archive_of(path, {"x": {"~array": "../../etc/passwd"}}),
    "brackets without end": lambda path: archive_of(path, "[" * 100_000),
    "a number without end": lambda path: archive_of(path, '{"format": 1, "states": ' + "9" * 10**5 + "}"),
    "a list for states": lambda path: archive_of(path, "[1, 2]"),
    "no text": lambda path: archive_of(path, ""),
    "no format": lambda path: archive_of(path, '{"states": {}}'),
    "a newer format": lambda path: archive_of(path, '{"format": 2, "states": {}}'),
    "states that are not a dict": lambda path: archive_of(path, [1, 2]),
    "a state that is not a dict": lambda path: archive_of(path, {"assigner": 3}),
}


class TestFiles:
    def test_truncated_file_raises(self, tmp_path):
        whole, path = tmp_path / "whole.npz", tmp_path / "run.npz"
        assigner = pm.PolicyAssigner(4, ["a"], num_envs=2, seed=0)
        pm.save(whole, assigner=assigner, payoff=pm.Payoff(1))
        content = whole.read_bytes()
        for length in range(len(content)):
            path.write_bytes(content[:length])
            with pytest.raises(ValueError, match=r"run\.npz is not a valid checkpoint"):
                pm.load(path)
        path.write_bytes(content)
        assigner.load_state_dict(pm.load(path)["assigner"])

    @pytest.mark.parametrize("kind", HOSTILE)
    def test_hostile_file_raises_executes_nothing_and_takes_no_memory(self, tmp_path, kind):
        path = tmp_path / "run.npz"
        HOSTILE[kind](path)
        tracemalloc.start()
        try:
            with pytest.raises(ValueError, match=r"run\.npz (is not a valid checkpoint|must have format)"):
                pm.load(path)
            assert tracemalloc.get_traced_memory()[1] < 4 * 10**6
        finally:
            tracemalloc.stop()
        assert os.listdir(tmp_path) == ["run.npz"]

    def test_archive_members_that_share_bytes_raise(self, tmp_path):
        path = tmp_path / "run.npz"
        archive_of(path, ONE, _0=array_bytes(np.zeros(10**5)))
        with zipfile.ZipFile(path, "a") as archive:
            (member,) = (info for info in archive.infolist() if info.filename == "0.npy")
            for i in range(1, 50):  # each says that it is the first one
                twin = zipfile.ZipInfo(f"{i}.npy")
                for name in ("header_offset", "file_size", "compress_size", "CRC"):
                    setattr(twin, name, getattr(member, name))
                archive.filelist.append(twin)
            archive._didModify = True
        with pytest.raises(ValueError, match=r"run\.npz is not a valid checkpoint.*longer than the file"):
            pm.load(path)


JUNK = [
    None,
    True,
    "x",
    "",
    -2,
    2**70,
    0.5,
    float("nan"),
    float("inf"),
    [],
    [[]],
    {},
    [None],
    ["a", ["b"]],
    (1, 2),
    b"x",
]
JUNK += [np.array(v) for v in (float("nan"), ["x"], [1, 2, 3], [[1, 2]], 1j, np.datetime64(0, "s"), [2.0**80])]


def places(state, path=()):
    """Yields the paths to all entries of a state."""
    for key, value in state.items():
        yield (*path, key)
        if isinstance(value, dict):
            yield from places(value, (*path, key))


def owner(kind):
    if kind == "assigner":
        one = pm.PolicyAssigner(pm.Weighted(lambda: [1, 2]), ["a", "b"], seed=0)
    elif kind == "assigner of many":
        one = pm.PolicyAssigner(pm.Weighted(lambda: [1, 2]), ["a", "b"], num_envs=3, seed=0)
    elif kind == "payoff":
        return pm.Payoff(3)
    else:
        return pm.PolicyStatistics(3)
    one.begin_episodes()
    return one


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", ["assigner", "assigner of many", "payoff", "statistics"])
def test_state_with_any_invalid_entry_raises_or_loads_consistently(kind):
    for path in places(owner(kind).state_dict()):
        for junk in JUNK:
            loaded = owner(kind)
            before = str(loaded.state_dict())
            state = loaded.state_dict()
            part = state
            for key in path[:-1]:
                part = part[key]
            part[path[-1]] = junk
            try:
                loaded.load_state_dict(state)
            except ValueError as error:
                said = str(error)
            else:
                said = "it fits"
            if said == "it fits":
                again = owner(kind)
                again.load_state_dict(loaded.state_dict())  # what was taken is a state
                assert str(again.state_dict()) == str(loaded.state_dict()), (path, junk)
            else:
                assert "state does not fit" in said, (path, junk)
                assert str(loaded.state_dict()) == before, (path, junk)
