"""Weighted with a matrix inside Focal: the background is drawn by the focal policy's row."""

import numpy as np
import pytest
from scipy.stats import chisquare

import pz_policymap as pm
from pz_policymap import (
    Draw,
    Episode,
    Fixed,
    Focal,
    FromFunction,
    Payoff,
    PolicyAssigner,
    Roles,
    Shared,
    Teams,
    Uniform,
    Weighted,
    pfsp,
)
from tests.stub_envs import StubParallel

MIN_P = 1e-4  # of a chi-square test; the seeds are fixed, so it passes or fails once and for all
AGENTS = ["a", "b", "c", "d"]
MATRIX = np.array([[0.1, 0.2, 0.3, 0.4], [4.0, 3.0, 2.0, 1.0], [0.0, 1.0, 0.0, 1.0]])


def draw_of(num_envs=1, agents=AGENTS, seed=0):
    return Draw.at(seed, list(agents), np.arange(num_envs), np.zeros(num_envs, np.int64))


def test_each_focal_policy_meets_opponents_by_its_own_row():
    policies = Focal(Uniform(3), Weighted(MATRIX), rotate=False).assign(draw_of(20_000))
    for row, weights in enumerate(MATRIX):
        met = policies[policies[:, 0] == row, 1:]
        counts = np.bincount(met.ravel(), minlength=4)
        possible = weights > 0
        assert not counts[~possible].any()
        expected = weights[possible] / weights.sum() * counts.sum()
        assert chisquare(counts[possible], expected).pvalue > MIN_P


@pytest.mark.parametrize("rotate", [False, True])
def test_row_of_a_matrix_draws_as_a_vector(rotate):
    by_row = Focal(Fixed(1), Weighted(MATRIX), rotate=rotate).assign(draw_of(500))
    by_vector = Focal(Fixed(1), Weighted(MATRIX[1]), rotate=rotate).assign(draw_of(500))
    np.testing.assert_array_equal(by_row, by_vector)


# Policy i meets only policy 10 + i, so the opponent identifies the row.
MARKED = Weighted(np.eye(6), policies=[10, 11, 12, 13, 14, 15])
NAMES = ("x_0", "x_1", "y_0", "y_1")


@pytest.mark.parametrize(
    "background",
    [
        MARKED,
        Shared(MARKED),
        Teams(MARKED),
        Roles({"x": MARKED, "y": Shared(MARKED)}),
        Roles({"x": Teams(Shared(MARKED)), "y": Roles({"y": MARKED})}),
    ],
    ids=["itself", "shared", "teams", "roles", "deeper"],
)
@pytest.mark.parametrize("rotate", [False, True])
def test_row_of_the_focal_policy_reaches_nested_weights(background, rotate):
    policies = Focal(Uniform(6), background, rotate=rotate).assign(draw_of(300, NAMES))
    is_focal = policies < 10
    assert (np.count_nonzero(is_focal, axis=1) == 1).all()
    focal = policies[is_focal][:, None]
    assert (np.where(is_focal, focal + 10, policies) == focal + 10).all()
    assert set(focal.ravel()) == set(range(6))


def test_first_of_several_focal_seats_selects_the_row():
    for rotate in (False, True):
        policies = Focal(Uniform(6), MARKED, num_focal=2, rotate=rotate).assign(draw_of(300))
        first = policies[np.arange(300), np.argmax(policies < 10, axis=1)]
        assert (policies[policies >= 10].reshape(300, 2) == first[:, None] + 10).all()


def test_inner_focal_selects_the_row_of_its_background():
    inner = Focal(Fixed(5), MARKED, rotate=False)
    policies = Focal(Fixed(2), inner, rotate=False).assign(draw_of(5))
    assert (policies == [2, 5, 15, 15]).all()


@pytest.mark.parametrize("around", [Shared, lambda rule: Roles({"x": rule}, lambda agent: "x")], ids=["blind", "names"])
def test_focal_child_of_an_inner_focal_uses_the_outer_row(around):
    inner = Focal(around(MARKED), Fixed(20), num_focal=2)
    policies = np.sort(Focal(Uniform(6), inner).assign(draw_of(200)), axis=1)
    focal = policies[:, :1]
    assert set(focal.ravel()) == set(range(6))
    assert (policies[:, 1:3] == focal + 10).all()
    assert (policies[:, 3] == 20).all()


def test_matrix_works_inside_teams():
    policies = Teams(Focal(Uniform(6), MARKED)).assign(draw_of(200, NAMES))
    assert (policies[:, [0, 2]] == policies[:, [1, 3]]).all()
    assert (abs(policies[:, 0] - policies[:, 2]) == 10).all()


def test_prioritised_self_play_follows_the_ledger_at_every_draw():
    payoff = Payoff(4)
    rule = Focal(Uniform([0, 1]), Weighted(lambda: pfsp(payoff.win_rates, power=64.0)), rotate=False)
    assigner = PolicyAssigner(rule, ["learner", "opponent"], num_envs=400, resample_every=1, seed=0)
    before = assigner.begin_episodes()
    assert {tuple(pair) for pair in before.tolist()} == {(i, j) for i in (0, 1) for j in range(4)}
    for _ in range(50):  # each learner loses to one opponent and beats the others
        for learner, nemesis in ((0, 2), (1, 3)):
            for opponent in {0, 1, 2, 3} - {learner}:
                won = -1.0 if opponent == nemesis else 1.0
                payoff.record(Episode(policies=[learner, opponent], returns=[won, -won]))
    held = assigner.begin_episodes([7])
    np.testing.assert_array_equal(held[np.arange(400) != 7], before[np.arange(400) != 7])
    after = assigner.begin_episodes()
    assert {tuple(pair) for pair in after.tolist()} == {(0, 2), (1, 3)}


def test_matrix_callable_is_called_once_per_draw_also_for_late_agents_after_a_restart(tmp_path):
    weights = [np.eye(3), np.eye(3)[::-1]]
    asked = []

    def ask():
        asked.append(1)
        return weights[len(asked) - 1]

    rule = Focal(Fixed(0), Weighted(ask), rotate=False)
    script = [("a", "b"), ("a", "b", "c"), ()]
    env = pm.wrap(StubParallel(script, possible_agents=None), rule, seed=0)
    env.reset()
    assert env.policy_ids == {"a": 0, "b": 0}
    pm.save(tmp_path / "run.npz", assigner=env.assigner.state_dict(unfinished=False))
    env.step({})
    assert env.policy_ids == {"a": 0, "b": 0, "c": 0}
    assert len(asked) == 1

    resumed = pm.wrap(StubParallel(script, possible_agents=None), rule, seed=0)
    resumed.assigner.load_state_dict(pm.load(tmp_path / "run.npz")["assigner"])
    resumed.reset()  # the second episode of the block
    resumed.step({})
    assert resumed.policy_ids == {"a": 0, "b": 0, "c": 0}
    assert len(asked) == 1


def resumed(assigner, rule):
    other = PolicyAssigner(rule, None, seed=0)
    other.load_state_dict(assigner.state_dict())
    return other


class Outer(pm.PolicyMapping):
    """A mapping of a user around another mapping."""

    def __init__(self, inner):
        self.inner = inner

    @property
    def children(self):
        return (self.inner,)

    def assign(self, draw):
        return self.inner.assign(draw)


LEDGER = np.eye(300)[::-1]  # policy 0 meets policy 299


@pytest.mark.parametrize(
    ("around", "agents", "kept"),
    [
        (lambda rule: rule, ["a", "b"], LEDGER[0]),
        (lambda rule: Roles({"x": rule, "y": Fixed(0)}, lambda agent: "x"), ["a", "b"], LEDGER[0]),
        (lambda rule: rule, ["a"], LEDGER),  # no opponent yet
        (Outer, ["a", "b"], LEDGER),  # it might ask for another row later
    ],
    ids=["itself", "roles", "unread", "user"],
)
def test_state_holds_the_row_that_the_draw_read_or_the_matrix_where_another_may_be_read(around, agents, kept):
    matrix = LEDGER.copy()
    rule = around(Focal(Fixed(0), Weighted(lambda: matrix), rotate=False))
    assigner = PolicyAssigner(rule, None, seed=0)
    assigner.begin_episodes(agents=agents)
    matrix[:] = np.eye(300)  # a ledger may return its own array
    assert assigner.state_dict()["draw"]["weights"] == [kept.tolist()]
    for one in (resumed(assigner, rule), assigner):
        one.add_agents(["c", "d"])
        assert one.policy_ids[0, -2:].tolist() == [299, 299]
        assert one.state_dict()["draw"]["weights"] == [kept.tolist()]


@pytest.mark.parametrize(("rotate", "num_envs"), [(True, 1), (False, 2)])
def test_state_holds_no_weights_where_agents_cannot_join(rotate, num_envs):
    rule = Focal(Uniform(3), Weighted(lambda: MATRIX), rotate=rotate)
    assigner = PolicyAssigner(rule, AGENTS, num_envs, resample_every=2, seed=0)
    assigner.begin_episodes()
    state = assigner.state_dict()
    assert state["draw"]["weights"] == []
    other = PolicyAssigner(rule, AGENTS, num_envs, resample_every=2)
    other.load_state_dict(state)
    for _ in range(4):
        np.testing.assert_array_equal(other.begin_episodes(), assigner.begin_episodes())


@pytest.mark.parametrize("huge", [1e-300, 1.0, 1e308])
def test_late_agent_is_drawn_by_its_row_whatever_the_size_of_the_other_rows(huge):
    matrix = np.array([[0.1, 0.7, 0.2], [huge, huge, huge]])
    names = [f"agent_{i}" for i in range(60)]
    expected = pm.assignments(Focal(Fixed(0), Weighted(matrix), rotate=False), names, seed=0)
    rule = Focal(Fixed(0), Weighted(lambda: matrix), rotate=False)
    assigner = PolicyAssigner(rule, None, seed=0)
    assigner.begin_episodes(agents=names[:2])
    assigner.add_agents(names[2:])
    assert assigner.policy_ids[0].tolist() == expected.tolist()


@pytest.mark.parametrize("row", [0, 1])
def test_draw_on_a_boundary_picks_the_next_policy_with_positive_weight(row):
    draw = draw_of().against(np.array([row]))
    draw.uniform = lambda stream=0: np.array([[0.0, 0.25, 0.5, 1 - 2**-53]])
    assert Weighted([[0, 1, 0, 1, 0], [1, 1, 1, 1, 0]]).assign(draw).tolist() == [[[1, 1, 3, 3], [0, 1, 2, 3]][row]]


def test_columns_are_policies_and_rows_are_focal_policies():
    rule = Weighted([[1, 0], [0, 1]], policies=[7, 4])
    assert (Focal(Fixed(1), rule, rotate=False).assign(draw_of(3)) == [1, 4, 4, 4]).all()
    assert Weighted(MATRIX).num_policies == 4
    assert rule.num_policies is None


def test_weighted_equality_compares_the_weights():
    weights = lambda: [1, 1]  # noqa: E731
    assert Weighted(weights) == Weighted(weights)
    assert Weighted(weights) != Weighted(lambda: [1, 1])
    assert Weighted([1, 1]) != Uniform(2)


def test_repr_of_a_large_matrix_is_short_and_unique():
    one, other = np.eye(40), np.eye(40)[::-1]
    assert len(repr(Weighted(one))) < 100
    assert repr(Weighted(one)) == repr(Weighted(one.tolist()))
    assert repr(Weighted(one)) != repr(Weighted(other))


def test_matrix_has_repr_equality_and_hash():
    assert Weighted([[1, 0], [0, 1]]) == Weighted(np.eye(2))
    assert repr(Weighted([[1, 0], [0, 1]])) == "Weighted([[1, 0], [0, 1]])"
    assert hash(Weighted(np.eye(2))) == hash(Weighted(np.eye(2)))


@pytest.mark.parametrize(
    ("weights", "policies", "error", "message"),
    [
        ([[1, 0], [0, -1]], None, ValueError, "weights must be finite and not negative"),
        ([[1, 0], [0, np.nan]], None, ValueError, "weights must be finite and not negative"),
        ([[1, 0], [0, 1]], 3, ValueError, "weights must be 3 numbers, one per policy, got 2"),
        ([[[1]]], None, ValueError, r"weights must be a vector, .* or a matrix of such rows, got shape \(1, 1, 1\)"),
        ([[]], None, ValueError, r"weights must be a vector, .* got shape \(1, 0\)"),
    ],
)
def test_invalid_matrix_raises_at_construction_or_at_the_draw(weights, policies, error, message):
    with pytest.raises(error, match=f"^{message}"):
        Weighted(weights, policies)
    assigner = PolicyAssigner(Focal(Fixed(0), Weighted(lambda: weights, policies)), AGENTS, seed=0)
    with pytest.raises(error, match=f"^Focal.* failed at the draw of environment 0, episode 0: {message}"):
        assigner.begin_episodes()
    assert assigner.episode.tolist() == [-1]


def test_rows_of_different_lengths_raise():
    with pytest.raises(TypeError, match=r"weights must be a vector or a matrix of numbers, got \[\[1, 0\], \[1\]\]"):
        Weighted([[1, 0], [1]])


@pytest.mark.parametrize(
    "rule",
    [
        Weighted(MATRIX),
        Shared(Weighted(MATRIX)),
        Roles({"a": Weighted(MATRIX)}, lambda agent: "a"),
        Focal(Weighted(MATRIX), Uniform(2)),
        Teams(Focal(Shared(Weighted(MATRIX)), Uniform(2)), dict.fromkeys(AGENTS, 0)),
    ],
)
def test_matrix_outside_of_focal_raises_at_construction(rule):
    assert rule.needs_focal
    with pytest.raises(ValueError, match="weights must be a vector outside of the background of Focal"):
        PolicyAssigner(rule, AGENTS)
    with pytest.raises(ValueError, match=r"(^|: )weights must be a vector outside of .* Focal, got a matrix$"):
        rule.assign(draw_of())


def test_callable_that_returns_a_matrix_outside_of_focal_raises_at_the_draw():
    assigner = PolicyAssigner(Weighted(lambda: MATRIX), AGENTS, seed=0)
    with pytest.raises(
        ValueError, match=r"Weighted.* failed at the draw of environment 0, episode 0: weights must be a vector"
    ):
        assigner.begin_episodes()


@pytest.mark.parametrize("rule", [Focal(Uniform(2), Weighted(MATRIX)), Weighted(lambda: MATRIX), Weighted([1, 2])])
def test_other_rules_need_no_focal_policy(rule):
    assert not rule.needs_focal


@pytest.mark.parametrize("focal", [Fixed(3), FromFunction(lambda agents, draw: dict.fromkeys(agents, 3))])
def test_focal_policy_without_a_row_raises(focal):
    assigner = PolicyAssigner(Focal(focal, Weighted(MATRIX)), AGENTS, seed=0, env_index=5)
    message = r"weights must have a row that is not .* got shape \(3, 4\) for focal policy 3 in environment 5"
    with pytest.raises(ValueError, match=f"^Focal.* failed at the draw of environment 5, episode 0: .*{message}"):
        assigner.begin_episodes()


def test_row_of_zeros_raises_when_its_focal_policy_is_drawn():
    matrix = [[1, 0], [0, 0]]
    draw = Draw.at(0, ["a", "b"], env_index=[0], episode=[0])
    assert Focal(Fixed(0), Weighted(matrix)).assign(draw).tolist() == [[0, 0]]
    with pytest.raises(ValueError, match="weights must have a row that is not all zero .* for focal policy 1"):
        Focal(Fixed(1), Weighted(matrix)).assign(draw)


def test_error_names_the_first_environment_whose_focal_policy_has_no_row():
    draw = Draw.at(0, AGENTS, env_index=[6, 7, 8], episode=[0, 0, 0]).against(np.array([2, 4, 5]))
    with pytest.raises(ValueError, match=r"got shape \(3, 4\) for focal policy 4 in environment 7$"):
        Weighted(MATRIX).assign(draw)
