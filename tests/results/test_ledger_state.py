"""Saving and loading of both ledgers."""

import numpy as np
import pytest

import pz_policymap as pm
from tests.results.ledgers import WIN, ledger, played, same

LEDGERS = [
    lambda size=3: pm.Payoff(size),
    lambda size=3: pm.Payoff(size, decay=0.9, prior=2.0),
    lambda size=3: pm.PolicyStatistics(size, window=4),
]


def with_entry(state, value):
    """A state in which a count is another number."""
    name = "table" if "table" in state else "steps"
    changed = state[name].copy() if value == int(value) else state[name].astype(np.float64)
    changed.flat[0] = value
    return {**state, name: changed}


class TestState:
    @pytest.mark.parametrize("make", LEDGERS)
    def test_resumed_ledger_equals_an_uninterrupted_one(self, make, tmp_path):
        pm.save(tmp_path / "run.npz", ledger=played(make(), 0, 20))
        resumed = make()
        resumed.load_state_dict(pm.load(tmp_path / "run.npz")["ledger"])
        straight = played(make(), 0, 20)
        assert same(resumed, straight)
        assert same(played(resumed, 1, 20), played(straight, 1, 20))

    def test_state_without_decay_has_no_decayed_counts(self):
        assert [pm.Payoff(2, decay).state_dict()["table"].shape for decay in (1.0, 0.5)] == [(2, 2, 8), (2, 2, 10)]

    def test_ledger_saved_with_an_assigner_shares_its_file(self, tmp_path):
        payoff, assigner = ledger([WIN]), pm.PolicyAssigner(2, agents=["a", "b"], seed=0)
        pm.save(tmp_path / "run.npz", assigner=assigner, payoff=payoff)
        assert set(pm.load(tmp_path / "run.npz")) == {"assigner", "payoff"}

    def test_state_with_negative_decayed_counts_raises(self):
        mine = played(pm.Payoff(3, decay=0.9), 0, 20)
        state = mine.state_dict()
        state["table"][0, 1, -1] = -1e-9
        with pytest.raises(ValueError, match="^state does not fit: 'table' must be counts"):
            mine.load_state_dict(state)

    def test_state_with_the_largest_returns_can_be_loaded(self, tmp_path):
        payoff, statistics = pm.Payoff(2), pm.PolicyStatistics(2)
        for ledger_of in (payoff, statistics):
            for _ in range(1000):
                ledger_of.record(pm.Episode([0, 1, 1], [1e300, -1e300, -1e300], lengths=[2**53, 0, 0]))
        pm.save(tmp_path / "run.npz", payoff=payoff, statistics=statistics)
        states = pm.load(tmp_path / "run.npz")
        pm.Payoff(2).load_state_dict(states["payoff"])
        pm.PolicyStatistics(2).load_state_dict(states["statistics"])
        assert payoff.mean_returns[1, 0] == statistics.mean_return[1] == -1e300

    @pytest.mark.parametrize("make", LEDGERS)
    @pytest.mark.parametrize("size", [1, 5])
    def test_loaded_ledger_of_another_size_has_the_larger_size(self, make, size):
        saved = played(make(), 0, 20)
        resumed = make(size)
        resumed.load_state_dict(saved.state_dict())
        saved.grow(max(size, 3))
        assert same(resumed, saved)
        played(resumed, 1, 5)

    @pytest.mark.parametrize("make", LEDGERS)
    def test_state_does_not_share_memory_with_the_ledger(self, make):
        saved = played(make(), 0, 20)
        state = saved.state_dict()
        resumed = make()
        resumed.load_state_dict(state)
        played(resumed, 1, 20)
        assert same(saved, played(make(), 0, 20))
        again = make()
        again.load_state_dict(state)
        assert same(again, saved)

    @pytest.mark.parametrize("make", LEDGERS)
    @pytest.mark.parametrize(
        ("change", "error", "message"),
        [
            (lambda state: [], TypeError, "state must be a dict, got list"),
            (lambda state: {}, ValueError, "state does not fit: it has version=None, this ledger 1"),
            (lambda state: {**state, "version": 2}, ValueError, "state does not fit: it has version=2, this ledger 1"),
            (lambda state: {key: state[key] for key in list(state)[:-1]}, ValueError, "state does not fit: "),
            (
                lambda state: {**state, list(state)[-1]: [[1.0], [1.0, 2.0]]},
                ValueError,
                r"state does not fit: '(table|recent)' must be an array, got \[\[1.0\], \[1.0, 2.0\]\]",
            ),
            (lambda state: {**state, list(state)[-1]: "text"}, ValueError, "state does not fit: "),
            (lambda state: {**state, list(state)[-1]: state[list(state)[-1]][:1]}, ValueError, "state does not fit: "),
            (
                lambda state: {**state, list(state)[-1]: state[list(state)[-1]][..., :1]},
                ValueError,
                "state does not fit: ",
            ),
            (
                lambda state: {**state, list(state)[-1]: state[list(state)[-1]] * np.nan},
                ValueError,
                "state does not fit: ",
            ),
            (lambda state: {**state, list(state)[-1]: state[list(state)[-1]] > 0}, ValueError, "state does not fit: "),
            (lambda state: with_entry(state, -1), ValueError, "state does not fit: "),
            (lambda state: with_entry(state, -0.5), ValueError, "state does not fit: "),
        ],
    )
    def test_invalid_state_raises_and_changes_nothing(self, make, change, error, message):
        mine = played(make(), 0, 20)
        with pytest.raises(error, match=f"^{message}"):
            mine.load_state_dict(change(mine.state_dict()))
        assert same(mine, played(make(), 0, 20))

    @pytest.mark.parametrize(
        ("mine", "other", "message"),
        [
            (pm.Payoff(2, decay=0.9), pm.Payoff(2), "decay=1.0, this ledger 0.9"),
            (pm.Payoff(2), pm.Payoff(2, prior=0.5), "prior=0.5, this ledger 1.0"),
            (pm.PolicyStatistics(2, window=5), pm.PolicyStatistics(2), "window=100, this ledger 5"),
        ],
    )
    def test_state_with_other_settings_raises(self, mine, other, message):
        with pytest.raises(ValueError, match=f"^state does not fit: .*{message}"):
            mine.load_state_dict(other.state_dict())
