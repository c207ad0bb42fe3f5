"""The results file: appended, resumable after any cut, refused where it is something else."""

import io
import json
import math
import subprocess
import sys

import pytest
from pettingzoo.classic import rps_v2, tictactoe_v3

import pz_policymap as pm
from pz_policymap.evaluation.games import FinishedGame, Game
from pz_policymap.evaluation.results_file import ResultsFile
from tests import cli_bots
from tests.evaluation.outcomes import outcomes
from tests.stub_envs import StubParallel

TWO = {"a": "random", "b": "random"}
HEADER = {"format": "pz_policymap games", "version": 1, "environment": "rps_v2", "agents": ["x", "y"], "seed": 0}
GAME = {"names": ["a", "b"], "repetition": 0, "returns": [1.0, -1.0], "lengths": [1, 1], "moves": 7}


def written(path, *lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_results_file_cut_anywhere_resumes_with_the_same_games(tmp_path):
    path = tmp_path / "games.jsonl"
    whole = pm.tournament(rps_v2.parallel_env, TWO, cycles=2, results=path)
    content = path.read_bytes()
    header = content.index(b"\n")
    for length in (0, 1, header - 1, header, len(content) // 3, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:length])
        assert outcomes(pm.tournament(rps_v2.parallel_env, TWO, cycles=2, results=path)) == outcomes(whole)
        assert path.read_bytes() == content


def test_results_file_holds_a_game_before_the_next_one_begins(tmp_path):
    path = tmp_path / "games.jsonl"
    lines = []
    pm.tournament(
        rps_v2.parallel_env,
        TWO,
        cycles=2,
        results=path,
        progress=lambda done, _: lines.append(len(path.read_bytes().splitlines()) if done else 1),
    )
    assert lines == [1, 2, 3, 4, 5]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit of file sizes")
def test_results_file_on_a_full_disk_keeps_whole_games(tmp_path):
    path = tmp_path / "games.jsonl"
    code = f"""if True:
        import resource
        import pz_policymap as pm
        from pettingzoo.classic import rps_v2
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
        pm.tournament(rps_v2.parallel_env, {TWO}, cycles=50, results={str(path)!r})
    """
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "OSError" in run.stderr
    assert path.stat().st_size == 2000
    kept = len(pm.read_tournament(path).episodes)
    assert kept >= 10
    done = []
    result = pm.tournament(rps_v2.parallel_env, TWO, cycles=50, results=path, progress=lambda n, _: done.append(n))
    assert done[0] == kept
    assert outcomes(result) == outcomes(pm.tournament(rps_v2.parallel_env, TWO, cycles=50))


def test_results_file_that_another_process_writes_is_refused_and_keeps_its_games(tmp_path):
    path = tmp_path / "games.jsonl"
    settings = {"environment": "rps_v2", "agents": ["player_0", "player_1"], "seed": 0}
    for cycles in (1, 2):
        late = ResultsFile(path, settings)
        pm.tournament(rps_v2.parallel_env, TWO, cycles=cycles, results=path)
        content = path.read_bytes()
        with pytest.raises(ValueError, match="another process writes it, .* bytes instead of .*; give each its own"):
            late.open({})
        assert path.read_bytes() == content


def test_results_file_in_a_missing_folder_fails_before_play(tmp_path):
    with pytest.raises(FileNotFoundError):
        pm.tournament(rps_v2.parallel_env, {"a": "random", "b": cli_bots.fails}, results=tmp_path / "no" / "games")


def test_results_file_of_other_settings_is_refused_and_stays(tmp_path):
    path = tmp_path / "games.jsonl"
    pm.tournament(tictactoe_v3.env, TWO, results=path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="it holds another tournament: seed was 0 and is 1"):
        pm.tournament(tictactoe_v3.env, TWO, results=path, seed=1)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "content",
    [b"notes", b"notes\n", b"3\n", b"{}\n", b'{"agents": []}\n', json.dumps({**HEADER, "version": 2}).encode()],
)
def test_results_file_with_other_contents_is_refused_and_stays(content, tmp_path):
    path = tmp_path / "games.jsonl"
    path.write_bytes(content)
    for read in (lambda: pm.tournament(rps_v2.parallel_env, TWO, results=path), lambda: pm.read_tournament(path)):
        with pytest.raises(ValueError, match="games.jsonl: it is not a results file of this version; name another"):
            read()
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    "line",
    [
        3,
        {},
        {"entrant": "a"},
        {**GAME, "names": [1, 2]},
        {**GAME, "returns": [1.0]},
        {**GAME, "returns": [math.inf, 1.0]},
        {**GAME, "returns": [math.nan, 1.0]},
        {**GAME, "returns": [10**400, 1.0]},
        {**GAME, "lengths": "ab"},
        {**GAME, "lengths": [-1, 1]},
        {**GAME, "repetition": -1},
        {**GAME, "repetition": 10**20},
        {**GAME, "repetition": math.inf},
        {**GAME, "moves": -5},
        {**GAME, "moves": 10**20},
    ],
)
def test_results_file_damaged_line_is_named(line, tmp_path):
    path = written(tmp_path / "games.jsonl", HEADER, GAME, line)
    with pytest.raises(ValueError, match="games.jsonl: line 3 is damaged"):
        pm.read_tournament(path)


def test_results_file_agent_that_was_never_there_has_no_return(tmp_path):
    class Absent(StubParallel):
        def __init__(self):
            super().__init__(possible_agents=("a", "b", "c"))

    result = pm.tournament(Absent, {**TWO, "c": "random"}, results=tmp_path / "games.jsonl")
    assert {episode.agents for episode in result.episodes} == {("a", "b")}
    assert outcomes(pm.read_tournament(tmp_path / "games.jsonl")) == outcomes(result)


def test_entrant_with_other_contents_under_a_used_name_is_refused(tmp_path):
    weights, path = tmp_path / "v1.txt", tmp_path / "games.jsonl"
    weights.write_text("first")
    entrants = {"v1": pm.Entrant(cli_bots.loads, weights), "random": "random", "free": cli_bots.first_free}
    pm.tournament(tictactoe_v3.env, entrants, results=path)
    before = path.read_bytes()
    pm.tournament(tictactoe_v3.env, entrants, results=path)
    weights.write_text("last")
    with pytest.raises(ValueError, match=r"entrant 'v1' in version 'sha256 .*', got 'sha256 .*'; give changed"):
        pm.tournament(tictactoe_v3.env, entrants, results=path)
    entrants["v1"] = pm.Entrant(cli_bots.loads, weights, version="2")
    with pytest.raises(ValueError, match="got '2'"):
        pm.tournament(tictactoe_v3.env, entrants, results=path)
    assert path.read_bytes() == before


def test_entrant_with_a_version_is_refused_under_a_name_played_without_one(tmp_path):
    path = tmp_path / "games.jsonl"
    entrants = {"v1": cli_bots.first_free, "random": "random"}
    pm.tournament(tictactoe_v3.env, entrants, results=path)
    before = path.read_bytes()
    entrants["v1"] = pm.Entrant(getattr, cli_bots, "last_free", version="2")
    for cycles in (1, 2):  # with and without games to play
        with pytest.raises(ValueError, match="games of entrant 'v1' without a version, got '2'; give changed contents"):
            pm.tournament(tictactoe_v3.env, entrants, cycles=cycles, results=path)
    assert path.read_bytes() == before
    entrants["v2"] = entrants.pop("v1")
    pm.tournament(tictactoe_v3.env, entrants, results=path)


def test_read_tournament_refuses_files_that_contradict_each_other(tmp_path):
    version = {"entrant": "a", "entrant_version": "1"}
    first = written(tmp_path / "first", HEADER, version, GAME)
    same = written(tmp_path / "same", HEADER, version, GAME, {**GAME, "repetition": 1})
    assert len(pm.read_tournament(first, same).episodes) == 2
    for lines, message in (
        ([{**HEADER, "seed": 1}], "seed was 1 and is 0"),
        ([HEADER, {**version, "entrant_version": "2"}], "entrant 'a' in version '2', got '1'"),
        ([HEADER, GAME], "entrant 'a' without a version, got '1'"),
        ([HEADER, version, {**GAME, "moves": 8}], "game 0 of a - b ended differently in another file"),
    ):
        with pytest.raises(ValueError, match=message):
            pm.read_tournament(first, written(tmp_path / "other", *lines))
    with pytest.raises(ValueError, match="entrant 'a' without a version, got '1'"):
        pm.read_tournament(written(tmp_path / "other", HEADER, GAME), first)
    with pytest.raises(ValueError, match="paths must be at least one results file, got none"):
        pm.read_tournament()
    with pytest.raises(ValueError, match="it is not a results file"):
        pm.read_tournament(written(tmp_path / "empty"))
    with pytest.raises(FileNotFoundError):
        pm.read_tournament(tmp_path / "missing")


def test_read_tournament_keeps_one_of_equal_games_and_may_replace_its_source(tmp_path):
    path = written(tmp_path / "games", HEADER, GAME, {**GAME, "repetition": 1}, GAME)
    assert len(pm.read_tournament(path, path, into=path).episodes) == 2
    assert [json.loads(line).get("repetition") for line in path.read_text().splitlines()] == [None, 0, 1]
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        pm.read_tournament(path, into=tmp_path / "folder")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["folder", "games"]


def test_results_file_short_write_is_an_error_and_leaves_whole_games(tmp_path):
    class Full(io.FileIO):
        def write(self, line):
            return super().write(line[:3])

    file = ResultsFile(tmp_path / "games", {"agents": ["x", "y"]})
    file.close()  # nothing was opened
    file.open({"a": "1"})
    file._file.close()
    file._file = Full(tmp_path / "games", "a")
    with pytest.raises(OSError, match="cannot be written: the disk is full"):
        file.append(FinishedGame(Game(("a", "b"), 0), [0.0, 1.0], [1, 1]))
    file.close()
    assert (tmp_path / "games").read_bytes().endswith(b'\n{"n')
    again = ResultsFile(tmp_path / "games", {"agents": ["x", "y"]})
    assert (len(again.games), again.versions) == (0, {"a": "1"})
    again.open({"a": "1"})
    again.append(FinishedGame(Game(("a", "b"), 0), [0.0, 1.0], [1, 1]))
    again.close()
    assert len(ResultsFile(tmp_path / "games").games) == 1


def test_read_tournament_without_one_of_its_files_raises(tmp_path):
    pm.tournament(tictactoe_v3.env, {"a": "random", "b": "random"}, results=tmp_path / "a.jsonl")
    with pytest.raises(FileNotFoundError):
        pm.read_tournament(tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    (tmp_path / "b.jsonl").touch()
    with pytest.raises(ValueError, match=r"b\.jsonl: it is empty"):
        pm.read_tournament(tmp_path / "a.jsonl", tmp_path / "b.jsonl", into=tmp_path / "c.jsonl")
    assert not (tmp_path / "c.jsonl").exists()
