"""`RecurrentState`: one state per row, reset with its episode and with its policy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pz_policymap import PolicyGroups, RecurrentState

ROWS = np.arange(3)


def scalar(value=0):
    return np.array(value)


def remembering(observations, state):
    """Acts by what it remembers, and remembers one step more."""
    return state, state + 1


def pair(observations, state):
    """The same with a state of two arrays of other shapes."""
    return state["steps"][:, 0], {
        "steps": state["steps"] + 1,
        "seen": (state["seen"][0] + observations[:, None, None],),
    }


PAIR = {"steps": np.zeros(1, int), "seen": (np.zeros((1, 2)),)}


def steps_by_hand(rows_of, begins, policy_ids):
    """How many steps each row's policy has acted on it in its episode: the same, a row at a time."""
    steps, owner, shown = [0] * rows_of, [-1] * rows_of, []
    for mask, ids in zip(begins, policy_ids, strict=True):
        for row, (begin, policy) in enumerate(zip(mask, ids, strict=True)):
            if begin:
                owner[row] = -1
            if policy >= 0 and policy != owner[row]:
                steps[row], owner[row] = 0, policy
        shown.append([steps[row] if policy >= 0 else 0 for row, policy in enumerate(ids)])
        for row, policy in enumerate(ids):
            steps[row] += policy >= 0
    return shown


@settings(deadline=None)
@given(st.data())
def test_state_is_kept_per_row(data):
    num_rows = data.draw(st.integers(1, 5))
    row = st.lists(st.integers(-1, 3), min_size=num_rows, max_size=num_rows)
    policy_ids = data.draw(st.lists(row, min_size=1, max_size=6))
    begins = [data.draw(st.lists(st.booleans(), min_size=num_rows, max_size=num_rows)) for _ in policy_ids]
    memory = RecurrentState(num_rows, [scalar(), scalar(), PAIR, PAIR])
    shown = []
    for mask, ids in zip(begins, policy_ids, strict=True):
        memory.begin(mask)
        actions = PolicyGroups(ids).act([remembering, remembering, pair, pair], np.ones(num_rows), memory)
        shown.append([0] * num_rows if actions is None else actions.tolist())
    assert shown == steps_by_hand(num_rows, begins, policy_ids)


@pytest.mark.parametrize("rows", [[1], np.array([1]), [False, True, False], np.array([False, True, False])])
def test_a_row_begins_by_number_or_by_mask(rows):
    memory = RecurrentState(3, [scalar()])
    memory.write(0, ROWS, np.array([5, 6, 7]))
    memory.begin(rows)
    assert memory.read(0, ROWS).tolist() == [5, 0, 7]


def test_begin_without_rows_changes_nothing():
    memory = RecurrentState(3, [scalar()])
    memory.write(0, ROWS, np.array([5, 6, 7]))
    memory.begin([])
    assert memory.read(0, ROWS).tolist() == [5, 6, 7]


def test_inactive_rows_keep_their_state():
    memory = RecurrentState(2, [scalar()])
    for ids in ([0, 0], [0, -1], [0, -1], [0, 0]):
        actions = PolicyGroups(ids).act([remembering], np.zeros(2), memory)
    assert actions.tolist() == [3, 1]


def test_another_policy_starts_from_its_initial_state():
    memory = RecurrentState(1, [scalar(), scalar()])
    memory.write(0, np.array([0]), np.array([7]))
    assert memory.read(1, np.array([0])).tolist() == [0]


def test_a_row_starts_from_the_initial_state_of_its_policy():
    memory = RecurrentState(2, {3: np.array([1.0, 2.0])})
    memory.write(3, np.array([1]), np.array([[5.0, 6.0]]))
    assert memory.read(3, np.array([0, 1])).tolist() == [[1.0, 2.0], [5.0, 6.0]]


def test_read_returns_a_copy():
    memory = RecurrentState(1, [scalar()])
    memory.write(0, np.array([0]), np.array([7]))
    memory.read(0, np.array([0]))[:] = 9
    assert memory.read(0, np.array([0])).tolist() == [7]


def test_policies_without_a_state_are_called_without_one():
    memory = RecurrentState(2, [None, scalar()])
    assert 0 not in memory
    assert 1 in memory
    actions = PolicyGroups([0, 1]).act([lambda observations: observations, remembering], np.array([5, 5]), memory)
    assert actions.tolist() == [5, 0]


def test_a_failed_step_stores_no_state():
    def broken(observations, state):
        raise RuntimeError("no action")

    memory = RecurrentState(2, [scalar(), scalar()])
    with pytest.raises(RuntimeError):
        PolicyGroups([0, 1]).act([remembering, broken], np.zeros(2), memory)
    assert PolicyGroups([0, 0]).act([remembering], np.zeros(2), memory).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (np.zeros((3, 2)), r"policy 0 does not fit its initial one: expected an array of shape \(3,\), got \(3, 2\)"),
        (np.zeros(2), r"expected an array of shape \(3,\), got \(2,\)"),
        ((np.zeros(3),), "a tuple of 1 and an array"),
        (np.zeros(3, complex), "expected an array of .*, got complex128"),
    ],
)
def test_a_state_that_does_not_fit_is_refused(state, message):
    memory = RecurrentState(3, [scalar()])
    with pytest.raises(ValueError, match=message):
        memory.write(0, ROWS, state)
    assert memory.read(0, ROWS).tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        ([True, False], ValueError, r"rows must be a mask of shape \(3,\), got \(2,\)"),
        ([0.0], TypeError, "rows must be integers or a boolean mask"),
        ([0, 3], ValueError, "rows must be from 0 to 2"),
        ([-1], ValueError, "rows must be from 0 to 2"),
        ([1, 1], ValueError, "rows must be distinct"),
        (1, TypeError, "rows must be integers or a boolean mask"),
    ],
)
def test_begin_with_invalid_rows_raises(rows, error, message):
    with pytest.raises(error, match=message):
        RecurrentState(3, [scalar()]).begin(rows)


@pytest.mark.parametrize(("num_rows", "error"), [(0, ValueError), (1.0, TypeError), (True, TypeError)])
def test_num_rows_must_be_a_positive_integer(num_rows, error):
    with pytest.raises(error, match="num_rows"):
        RecurrentState(num_rows, [scalar()])


def test_tensors_are_kept_on_their_device_and_cut_from_their_gradient():
    torch = pytest.importorskip("torch")
    cells = torch.nn.ModuleList([torch.nn.LSTMCell(3, 4), torch.nn.LSTMCell(3, 5)])
    memory = RecurrentState(3, [(torch.zeros(4), torch.zeros(4)), (torch.zeros(5), torch.zeros(5))])
    policies = [lambda o, state, cell=cell: ((new := cell(o, state))[0].sum(1), new) for cell in cells]
    observations = torch.rand(3, 3)
    groups = PolicyGroups([0, 1, 0])
    groups.act(policies, observations, memory)
    memory.begin(torch.tensor([False, False, True]))
    actions = groups.act(policies, observations, memory)

    by_hand = [cells[0](observations[:1], cells[0](observations[:1])), cells[1](observations[1:2])]
    by_hand[1] = cells[1](observations[1:2], by_hand[1])
    expected = [by_hand[0][0].sum(), by_hand[1][0].sum(), cells[0](observations[2:])[0].sum()]
    torch.testing.assert_close(actions, torch.stack(expected))
    assert actions.requires_grad
    assert not memory.read(0, np.array([0]))[0].requires_grad


def test_repr_shows_rows_and_recurrent_policies():
    assert repr(RecurrentState(3, {4: np.zeros(2), 1: np.zeros(2), 7: None})) == (
        "RecurrentState(num_rows=3, policies=[1, 4])"
    )
