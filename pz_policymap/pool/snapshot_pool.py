"""`SnapshotPool`: schedules snapshots of learners, weights their opponents, and releases unused snapshots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Literal

import numpy as np

from pz_policymap.arguments import integer
from pz_policymap.mappings.base import PolicyMapping
from pz_policymap.mappings.focal import Focal
from pz_policymap.pool.learner_settings import Floats, PoolLearner
from pz_policymap.pool.matchmaking import Opponents, opponent_weights, opponents_of, snapshot_to_retire
from pz_policymap.pool.members import Kind, Member, new_member
from pz_policymap.pool.pool_state import STATE_VERSION, checked_state
from pz_policymap.pool.seating import Seats, seated
from pz_policymap.pool.trigger import LastSnapshot
from pz_policymap.results.payoff import Payoff
from pz_policymap.wrappers.find import find_policy_wrapper


class SnapshotPool:
    """Members, matchmaking and snapshots of a population that learns by self-play.

    The pool only keeps records: it holds no networks, writes no files and starts no processes.
    Learners have the policy ids 0, 1, ... in the order given, fixed policies the next ones, and every snapshot a new
    one. After each rollout, a training loop does this:

        if pool.snapshot_due("main", step, payoff):
            member = pool.snapshot("main", step, payoff)
            networks[member.policy_id] = copy.deepcopy(networks[0])
        env.set_mapping(pool.mapping(payoff))
        for member in pool.release([env]):
            del networks[member.policy_id]

    Args:
        learners: Names or `PoolLearner`s, at least one.
        fixed: Names of scripted or frozen policies.
        capacity: Number of snapshots with a slot, >= 1; None: unlimited. If a snapshot is due and no slot is free, one
            member retires: the next mapping leaves it out, and the snapshot is due again once the member is released.
        evict: The snapshot that retires: "oldest"; "spread" keeps those of each learner evenly spaced; "weakest" is the
            one with the lowest share in the next mapping.
        seats: Makes a mapping from that of the learner and that of its opponents: `Focal`, or a function that puts them
            into `Roles` or `Teams`. Learners take turns uniformly. Learners that hold different roles need a dict from
            learner to such a function.

    Raises:
        KeyError: If a group of opponents is unknown, or a learner is missing in `seats`.
        TypeError: If an argument has the wrong type.
        ValueError: If a name is used twice or is the name of a group, or a number is out of range.

    Example:
        >>> from pz_policymap import Payoff
        >>> pool = SnapshotPool([PoolLearner("main", {"snapshots": 0.8, "random": 0.2}, every=100)], fixed=["random"])
        >>> payoff = Payoff(pool.num_policies)
        >>> pool.opponent_weights("main", payoff).tolist()
        [0.0, 1.0]
        >>> pool.snapshot_due("main", 100, payoff)
        True
        >>> pool.snapshot("main", 100, payoff).policy_id
        2
        >>> pool.opponent_weights("main", payoff).tolist()
        [0.0, 0.2, 0.8]
    """

    def __init__(
        self,
        learners: Sequence[PoolLearner | str],
        fixed: Sequence[str] = (),
        *,
        capacity: int | None = None,
        evict: Literal["oldest", "spread", "weakest"] = "oldest",
        seats: Seats | Mapping[str, Seats] = Focal,
    ) -> None:
        if isinstance(learners, (str, PoolLearner)) or not learners:
            raise TypeError(f"learners must be a sequence with at least one name or PoolLearner, got {learners!r}")
        if evict not in ("oldest", "spread", "weakest"):
            raise ValueError(f"evict must be 'oldest', 'spread' or 'weakest', got {evict!r}")
        self.capacity = None if capacity is None else integer("capacity", capacity, 1)
        self.evict, self._seats = evict, seats
        settings = [PoolLearner(one) if isinstance(one, str) else one for one in learners]
        self._learners, self._members = {one.name: one for one in settings}, list[Member]()
        for name in (*(one.name for one in settings), *fixed):
            kind: Kind = "learner" if len(self._members) < len(settings) else "fixed"
            self._members.append(new_member(self._members, name, kind))
        self._retired: set[int] = set()  # left out of the next mapping, perhaps still in force somewhere
        self._left_out: set[int] = set()  # of the latest mapping
        self._released, self._slots = set[int](), dict[int, int]()
        self._last = {name: LastSnapshot() for name in self._learners}
        self._mapping: PolicyMapping | None = None
        self._weights: tuple[list[list[float]], list[int] | None] = [], None  # of which policy ids; None: of all
        self._known_opponents: tuple[int, int, dict[str, Opponents]] = 0, 0, {}
        self.mapping(Payoff(self.num_policies))

    def __repr__(self) -> str:
        slots = "" if self.capacity is None else f" in {self.capacity} slots"
        return f"<SnapshotPool: {', '.join(self._learners)}; {len(self._slots)} snapshots{slots}>"

    @property
    def members(self) -> tuple[Member, ...]:
        """All members ever added; the one with policy id i is `members[i]`."""
        return tuple(self._members)

    @property
    def num_policies(self) -> int:
        """Number of policy ids assigned so far: the size of the ledger."""
        return len(self._members)

    @property
    def names(self) -> list[str]:
        """The name of each policy id."""
        return [member.name for member in self._members]

    @property
    def slots(self) -> dict[int, int]:
        """Policy id -> slot in 0..capacity-1 of every snapshot that is not released, for stacked parameters."""
        return dict(self._slots)

    def active(self, learner: str | None = None) -> list[int]:
        """Returns the policy ids of active snapshots, oldest first; of one learner, or of all."""
        return [
            policy_id
            for policy_id in self._slots
            if policy_id not in self._retired and learner in (None, self._members[policy_id].learner)
        ]

    def snapshot_due(self, learner: str, step: int, payoff: Payoff) -> bool:
        """Returns whether to take a snapshot of a learner now; it also retires a member if no slot is free.

        Args:
            learner: The name of the learner; a KeyError if it is unknown.
            step: Its step; a ValueError if it is below that of the last snapshot.
            payoff: The ledger.
        """
        settings, last = self._settings(learner), self._last[learner]
        due = last.is_due_by_steps(settings, step)
        if not due and settings.win_rate is not None:
            due = last.is_due_by_win_rate(settings, self._own(learner), self._opponents(learner).ids, payoff)
        return due and self._has_room(payoff)

    def snapshot(
        self, learner: str, step: int, payoff: Payoff | None = None, name: str | None = None, reset: bool = False
    ) -> Member:
        """Adds a snapshot of a learner and returns it; its policy id is new.

        Args:
            learner: As in `snapshot_due`.
            step: As in `snapshot_due`.
            payoff: The ledger, which grows; for `win_rate`, evict="weakest" and `reset`.
            name: Its name; None: "LEARNER@STEP".
            reset: Whether the learner restarts from its initial parameters: the ledger then forgets its results.

        Raises:
            KeyError: If the learner is unknown.
            ValueError: If no slot is free, the name is taken, or the ledger is needed and missing.
        """
        settings = self._settings(learner)
        if payoff is None and (settings.win_rate is not None or self.evict == "weakest" or reset):
            raise ValueError("payoff must be given for win_rate, evict='weakest' and reset, got None")
        step = integer("step", step, self._last[learner].step)
        if not self._has_room(payoff):
            retired = sorted(self._retired - self._released)
            raise ValueError(f"capacity must leave a free slot, got {self.capacity}: release members {retired} first")
        self._members.append(new_member(self._members, name or f"{learner}@{step}", "snapshot", learner, step))
        member, taken = self._members[-1], set(self._slots.values())
        self._slots[member.policy_id] = next(slot for slot in range(len(taken) + 1) if slot not in taken)
        if payoff is not None:
            payoff.grow(max(self.num_policies, payoff.num_policies))
            if reset:
                payoff.forget(self._own(learner))
                self._last = {name: last.without(self._own(learner)) for name, last in self._last.items()}
        self._last[learner] = LastSnapshot.now(self._own(learner), step, payoff)
        return member

    def retire(self, policy_id: int) -> None:
        """Leaves a snapshot out of the next mappings; a ValueError if it is not active."""
        if policy_id not in self.active():
            raise ValueError(f"policy_id must be an active snapshot, one of {self.active()}, got {policy_id!r}")
        self._retired.add(policy_id)

    def opponent_weights(self, learner: str, payoff: Payoff) -> Floats:
        """Returns the probability with which a learner meets each policy id, shape `(num_policies,)`; they sum to 1.

        Raises:
            KeyError: If the learner is unknown.
            ValueError: If the ledger is smaller than the pool, or a rule returns bad weights.
        """
        if payoff.num_policies < self.num_policies:
            raise ValueError(f"payoff must have {self.num_policies} policies, got {payoff.num_policies}: call grow")
        groups = self._opponents(learner).groups
        return opponent_weights(groups, self._own(learner), self.num_policies, payoff)

    def mapping(self, payoff: Payoff) -> PolicyMapping:
        """Returns the mapping to use from now on. It holds only numbers, so it can be sent to workers.

        Raises:
            ValueError: As `opponent_weights`.
        """
        rows = np.array([self.opponent_weights(learner, payoff) for learner in self._learners])
        ids = [policy_id for policy_id in range(self.num_policies) if policy_id not in self._released]
        weights = (rows[:, ids].tolist(), ids) if self._released else (rows.tolist(), None)
        self._left_out = set(self._retired)
        if weights != self._weights:
            self._weights, self._mapping = weights, None
        return self.last_mapping

    @property
    def last_mapping(self) -> PolicyMapping:
        """The latest `mapping`, also of a resumed pool; before the first, that of an empty ledger."""
        if self._mapping is None:
            self._mapping = seated(self._seats, list(self._learners), *self._weights)
        return self._mapping

    def release(self, envs: Iterable[Any] = (), in_use: Iterable[int] = ()) -> list[Member]:
        """Releases and returns retired members that no environment uses: free their networks, their slots are reused.

        Args:
            envs: Environments of this process. One that does not yet follow the latest `mapping` uses every member.
            in_use: Policy ids that remote workers use: the `policies_in_use` of each of their environments, read after
                it was sent the latest mapping.
        """
        used, mapping = {int(policy_id) for policy_id in in_use}, self.last_mapping
        if self._left_out == self._released:
            return []
        for env in envs:
            wrapper = find_policy_wrapper(env)
            follows = wrapper.assigner.mapping
            if follows is not mapping and repr(follows) != repr(mapping):
                return []
            used |= wrapper.policies_in_use
        released = sorted(self._left_out - self._released - used)
        self._released.update(released)
        for policy_id in released:
            del self._slots[policy_id]
        return [self._members[policy_id] for policy_id in released]

    def state_dict(self) -> dict[str, Any]:
        """Returns the state to save in a checkpoint, for `save`."""
        return {
            "version": STATE_VERSION,
            "capacity": self.capacity,
            "members": [[m.name, m.kind, m.learner, m.step] for m in self._members],
            "retired": sorted(self._retired),
            "left_out": sorted(self._left_out),
            "released": sorted(self._released),
            "slots": [list(pair) for pair in self._slots.items()],
            "last": {name: asdict(last) for name, last in self._last.items()},
            "weights": self._weights[0],
            "weighted_ids": self._weights[1],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resumes from a saved state; the pool must have been made with the same learners, fixed policies and capacity.

        Wrap the environment with `last_mapping` before its state is loaded:

            states = pm.load(path)  # pm.save(path, env=env, payoff=payoff, pool=pool)
            pool.load_state_dict(states["pool"])
            env = pm.wrap(make_env(), pool.last_mapping)
            env.load_state_dict(states["env"])

        Raises:
            ValueError: If the state is damaged, of another version or of another pool; nothing has changed then.
        """
        new = checked_state(state, self._learners, self._members, self.capacity)
        self._members, self._slots, self._last = new.members, new.slots, new.last
        self._retired, self._left_out, self._released = new.retired, new.left_out, new.released
        self._weights, self._mapping = (new.weights, new.weighted_ids), None
        self._known_opponents = 0, 0, {}

    def _settings(self, learner: str) -> PoolLearner:
        if learner not in self._learners:
            raise KeyError(f"learner must be one of {list(self._learners)}, got {learner!r}")
        return self._learners[learner]

    def _opponents(self, learner: str) -> Opponents:
        """Returns the opponents of a learner, which change only when a member joins or retires."""
        self._settings(learner)
        *sizes, known = self._known_opponents
        if sizes != [len(self._members), len(self._retired)]:
            active = self.active()
            known = {name: opponents_of(one, self._members, active) for name, one in self._learners.items()}
            self._known_opponents = len(self._members), len(self._retired), known
        return known[learner]

    def _own(self, learner: str) -> int:
        return list(self._learners).index(learner)

    def _has_room(self, payoff: Payoff | None) -> bool:
        """Returns whether a slot is free; if not, one member retires unless one already has."""
        if self.capacity is None or len(self._slots) < self.capacity:
            return True
        if not self._retired - self._released:
            shares = np.zeros(self.num_policies)
            if self.evict == "weakest" and payoff is not None:
                shares = np.sum([self.opponent_weights(learner, payoff) for learner in self._learners], axis=0)
            self._retired.add(snapshot_to_retire(self.evict, self._members, self.active(), shares))
        return False
