"""`SelfPlay` and `SelfPlayEnv`: a `SnapshotPool` chooses the opponents of a model that learns."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecNormalize, VecTransposeImage, is_vecenv_wrapped

from pz_policymap.arguments import integer
from pz_policymap.checkpoint import load, replacing, save
from pz_policymap.learner.learner_env import LearnerEnv
from pz_policymap.pool.snapshot_pool import SnapshotPool
from pz_policymap.recording.record import record_results
from pz_policymap.results.episode import Episode
from pz_policymap.results.payoff import Payoff

_STATE = "pool.npz"
_LEARNER = 0  # the policy id of the only learner of a pool


class SelfPlayEnv(LearnerEnv):
    """A `LearnerEnv` that keeps the results of its episodes until `SelfPlay` collects them, in any process.

    Args:
        env: A PettingZoo environment with a policy wrapper around or inside it, which follows `pool.last_mapping`.
        policies: `SelfPlay.policies`.
        team_of: As in `record_results`: agents of a team win and lose together.
        **options: As in `LearnerEnv`.
    """

    def __init__(self, env: Any, policies: Mapping[int, Any], *, team_of: Any = None, **options: Any) -> None:
        self._untaken: list[Episode] = []
        super().__init__(record_results(env, self._keep, team_of=team_of), policies, **options)

    def take_episodes(self) -> list[Episode]:
        """Returns the episodes that have ended since the last call."""
        taken, self._untaken = self._untaken, []
        return taken

    def _keep(self, episode: Episode) -> None:
        self._untaken.append(episode)


class SelfPlay(BaseCallback):
    """Takes snapshots of the model that learns, and updates the opponents of all environments between rollouts.

    Where the learner meets itself, a copy of the model is its opponent, renewed at every update. In the first episode
    of each environment, before a model exists, this opponent acts at random.

    It logs `pool/size`, the win rates `pool/win_rate` (the mean over all active opponents), `pool/win_rate_latest` and
    `pool/win_rate_NAME` of each fixed policy, `pool/rating` and `pool/rating_error`.

    Args:
        pool: A pool with one learner. Without fixed policies it meets itself until the first snapshot.
        payoff: The ledger.
        policies: The fixed policies by name; as in `LearnerEnv`.
        folder: Where model, snapshots, pool, ledger and schedules are saved. None: nowhere. A snapshot's file,
            `policy_ID.zip`, stays when it is released. Replay buffers and random generators are not saved.
        save_every: Number of updates between two saves, >= 1.
        update_every: Number of steps between two updates, >= 1; for off-policy algorithms, whose rollouts are short.
        device: The device of snapshots.

    Attributes:
        policies: The policies of opponents by policy id; for `SelfPlayEnv`.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If the pool has several learners, or a fixed policy is missing.
    """

    def __init__(
        self,
        pool: SnapshotPool,
        payoff: Payoff,
        policies: Mapping[str, Any],
        *,
        folder: str | os.PathLike[str] | None = None,
        save_every: int = 1,
        update_every: int = 1,
        device: str = "cpu",
    ) -> None:
        super().__init__()
        self.pool, self.payoff, self.device = pool, payoff, device
        self.folder = None if folder is None else Path(folder)
        self.save_every = integer("save_every", save_every, 1)
        self.update_every = integer("update_every", update_every, 1)
        names = {member.name: member.policy_id for member in pool.members if member.kind == "fixed"}
        learners = [member.name for member in pool.members if member.kind == "learner"]
        if len(learners) != 1:
            raise ValueError(f"pool must have one learner, the model, got {learners}")
        if set(policies) != set(names):
            raise ValueError(f"policies must be those of {list(names)}, got {list(policies)}")
        (self._learner,) = learners
        self.policies = {names[name]: policy for name, policy in policies.items()}
        if self._meets_itself():
            self.policies[_LEARNER] = "random"
        self._changed = False  # whether `policies` changed since it was sent to the environments
        self._updated_at: int | None = None
        self._updates = 0

    @property
    def saved(self) -> bool:
        """Whether the folder holds a run to resume."""
        return self.folder is not None and (self.folder / _STATE).exists()

    def resume(self, algorithm: Any, env: Any, **options: Any) -> Any:
        """Resumes a saved run, and returns the model; then call `learn` with `reset_num_timesteps=False`.

        Every environment continues its schedule, so that it meets the opponents it would have met.

        Args:
            algorithm: The class of the model, such as `PPO`.
            env: The vector environment, made as for the first start.
            **options: Passed to `algorithm.load`.

        Raises:
            OSError: If the folder holds no saved run.
            ValueError: If the states do not fit pool, ledger or environments.
        """
        folder = self._folder()
        states = load(folder / _STATE)
        self.pool.load_state_dict(states["pool"])
        self.payoff.load_state_dict(states["payoff"])
        model = algorithm.load(folder / states["run"]["model"], env=env, **options)
        for policy_id in self.pool.slots:
            self.policies[policy_id] = self._loaded(model, (folder / f"policy_{policy_id}.zip").read_bytes())
        if _LEARNER in self.policies:  # also if only a draw that is still in force seats the learner twice
            self.policies[_LEARNER] = self._loaded(model, _saved(model.policy))
        venv = model.get_env()
        venv.env_method("set_policies", self.policies)
        venv.env_method("set_mapping", self.pool.last_mapping)
        for index, state in states["envs"].items():
            venv.env_method("load_state_dict", state, indices=int(index))
        return model

    def _init_callback(self) -> None:
        venv = self.training_env
        try:
            self._collect()
        except (AttributeError, ConnectionError, EOFError) as error:
            raise TypeError(f"env must hold SelfPlayEnvs, got {venv}") from error
        normalized = self.model.get_vec_normalize_env()
        changed = venv.observation_space != venv.get_attr("observation_space")[0]
        if (isinstance(normalized, VecNormalize) and normalized.norm_obs) or (
            changed and not is_vecenv_wrapped(venv, VecTransposeImage)
        ):
            raise ValueError(f"env must not change observations, because opponents receive the originals, got {venv}")

    def _on_rollout_start(self) -> None:
        if self._updated_at is None or self.num_timesteps - self._updated_at >= self.update_every:
            self._updated_at = self.num_timesteps
            self._update()
            self._updates += 1
            if self.folder is not None and self._updates % self.save_every == 0:
                self._save(self.folder)

    def _on_step(self) -> bool:
        return True

    def _on_training_end(self) -> None:
        self._collect()
        if self.folder is not None:
            self._save(self.folder)

    def _collect(self) -> None:
        """Records the results of all environments, in the order of the environments."""
        for episodes in self.training_env.env_method("take_episodes"):
            for episode in episodes:
                self.payoff.record(episode)

    def _update(self) -> None:
        """Takes a snapshot if one is due, and sends opponents and mapping to all environments."""
        self._collect()
        pool, venv = self.pool, self.training_env
        if pool.snapshot_due(self._learner, self.num_timesteps, self.payoff):
            member = pool.snapshot(self._learner, self.num_timesteps, self.payoff)
            content = _saved(self.model.policy)
            self.policies[member.policy_id] = self._loaded(self.model, content)
            self._changed = True
            if self.folder is not None:
                _write(self.folder / f"policy_{member.policy_id}.zip", content)
        if self._meets_itself():
            # A new dict: environments of this process read the old one when an agent joins a running episode.
            self.policies = {**self.policies, _LEARNER: self._loaded(self.model, _saved(self.model.policy))}
            self._changed = True
        if self._changed:
            venv.env_method("set_policies", self.policies)
        venv.env_method("set_mapping", pool.mapping(self.payoff))
        released = pool.release(in_use=set().union(*venv.get_attr("policies_in_use")))
        for member in released:
            del self.policies[member.policy_id]
        self._changed = bool(released)
        self._log()

    def _log(self) -> None:
        pool, rates, active = self.pool, self.payoff.win_rates[0], self.pool.active()
        fixed = {member.name: member.policy_id for member in pool.members if member.kind == "fixed"}
        self.logger.record("pool/size", len(active))
        if opponents := [*fixed.values(), *active]:
            self.logger.record("pool/win_rate", float(rates[opponents].mean()))
        for name, policy_id in {**fixed, **({"latest": active[-1]} if active else {})}.items():
            self.logger.record(f"pool/win_rate_{name}", float(rates[policy_id]))
        if self.payoff.prior > 0.0:
            values, errors = self.payoff.ratings()
            self.logger.record("pool/rating", float(values[0]))
            self.logger.record("pool/rating_error", float(errors[0]))

    def _meets_itself(self) -> bool:
        """Returns whether the next mapping may seat the learner twice."""
        return bool(self.pool.opponent_weights(self._learner, self.payoff)[_LEARNER] > 0.0)

    def _loaded(self, model: Any, content: bytes) -> Any:
        """Returns a saved policy of a model."""
        return type(model.policy).load(io.BytesIO(content), device=self.device)

    def _save(self, folder: Path) -> None:
        """Saves model and states; the file of states names the model, so that both fit whenever the run is killed."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"model_{self.num_timesteps}.zip"
        _write(path, _saved(self.model))
        envs = {str(i): state for i, state in enumerate(self.training_env.env_method("state_dict"))}
        save(folder / _STATE, pool=self.pool, payoff=self.payoff, envs=envs, run={"model": path.name})
        for older in folder.glob("model_*.zip"):
            if older != path:
                older.unlink()

    def _folder(self) -> Path:
        if self.folder is None:
            raise ValueError("folder must be given to resume a run, got None")
        return self.folder


def _saved(part: Any) -> bytes:
    """Returns a model or a policy as the content of a file; a trained policy cannot be deep-copied."""
    content = io.BytesIO()
    part.save(content)
    return content.getvalue()


def _write(path: Path, content: bytes) -> None:
    """Writes a file atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(content)
