"""Assigns the policies of a population to agents: once per block of episodes, identical on any number of workers.

    import pz_policymap as pm

    env = pm.wrap(env, 4)                      # a population of four policies
    observations, infos = env.reset(seed=42)
    infos["player_0"]["policy_id"]             # the policy that controls player_0

Start with `wrap` (any PettingZoo or Gymnasium environment, vectors and
batched simulators included) and `env_fns` (many environments).

- Mappings: `Uniform`, `Weighted`, `Fixed`, `ByEnvIndex`, `FromFunction`, `PerWorker`, `Balanced`, `RoundRobin`; nested
  ones are `Shared`, `Teams`, `Roles` and `Focal`. `mapping_from_text` reads their text form.
- The policies of any environment and episode, without an environment: `assignments`.
- Results and matchmaking: `record_results`, `finished_episodes`, `Payoff`, `PolicyStatistics`.
- Estimates from episodes: `policy_results`, `seat_results`, `cooperation`.
- Weights over a population: `pfsp`, `latest`, `delta_uniform`, `nash`, `alpha_rank`.
- Self-play and leagues: `SnapshotPool`, `PoolLearner`.
- Evaluation: `play`, `PlayResult`, `tournament`, `TournamentResult`, `read_tournament`, `Entrant`.
- One learning policy in a single-agent trainer: `LearnerEnv`; several of them: `LearnerVectorEnv`.
- Batches: `PolicyGroups`, `act`, `RecurrentState`.
- Pictures: `plots.assignments`, `plots.payoff`, `plots.ratings`, `plots.shares`.
- Checkpoints: `save`, `load`. Simulators of your own: `PolicyAssigner`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pz_policymap import plots as plots
    from pz_policymap.assigner import PolicyAssigner as PolicyAssigner
    from pz_policymap.assignment import assignments as assignments
    from pz_policymap.batching.act import act as act
    from pz_policymap.batching.policy_groups import PolicyGroups as PolicyGroups
    from pz_policymap.batching.recurrent_state import RecurrentState as RecurrentState
    from pz_policymap.checkpoint import load as load
    from pz_policymap.checkpoint import save as save
    from pz_policymap.evaluation.play import play as play
    from pz_policymap.evaluation.play_result import PlayResult as PlayResult
    from pz_policymap.evaluation.tournament import tournament as tournament
    from pz_policymap.evaluation.tournament_result import TournamentResult as TournamentResult
    from pz_policymap.evaluation.tournament_result import read_tournament as read_tournament
    from pz_policymap.learner.learner_env import LearnerEnv as LearnerEnv
    from pz_policymap.learner.vector import LearnerVectorEnv as LearnerVectorEnv
    from pz_policymap.mappings.balanced import Balanced as Balanced
    from pz_policymap.mappings.base import PolicyMapping as PolicyMapping
    from pz_policymap.mappings.fixed import ByEnvIndex as ByEnvIndex
    from pz_policymap.mappings.fixed import Fixed as Fixed
    from pz_policymap.mappings.focal import Focal as Focal
    from pz_policymap.mappings.from_function import FromFunction as FromFunction
    from pz_policymap.mappings.per_worker import PerWorker as PerWorker
    from pz_policymap.mappings.roles import Roles as Roles
    from pz_policymap.mappings.round_robin import RoundRobin as RoundRobin
    from pz_policymap.mappings.shared import Shared as Shared
    from pz_policymap.mappings.teams import Teams as Teams
    from pz_policymap.mappings.text import mapping_from_text as mapping_from_text
    from pz_policymap.mappings.uniform import Uniform as Uniform
    from pz_policymap.mappings.weighted import Weighted as Weighted
    from pz_policymap.policies.entrant import Entrant as Entrant
    from pz_policymap.pool.learner_settings import PoolLearner as PoolLearner
    from pz_policymap.pool.snapshot_pool import SnapshotPool as SnapshotPool
    from pz_policymap.randomness.draw import Draw as Draw
    from pz_policymap.randomness.draw import EnvDraw as EnvDraw
    from pz_policymap.recording.finished import finished_episodes as finished_episodes
    from pz_policymap.recording.record import record_results as record_results
    from pz_policymap.results.clustered_results import policy_results as policy_results
    from pz_policymap.results.clustered_results import seat_results as seat_results
    from pz_policymap.results.cooperation import cooperation as cooperation
    from pz_policymap.results.episode import Episode as Episode
    from pz_policymap.results.meta_strategies import alpha_rank as alpha_rank
    from pz_policymap.results.meta_strategies import nash as nash
    from pz_policymap.results.payoff import Payoff as Payoff
    from pz_policymap.results.statistics import PolicyStatistics as PolicyStatistics
    from pz_policymap.results.weights import delta_uniform as delta_uniform
    from pz_policymap.results.weights import latest as latest
    from pz_policymap.results.weights import pfsp as pfsp
    from pz_policymap.wrappers.aec import PolicyMapAEC as PolicyMapAEC
    from pz_policymap.wrappers.find import find_assigner as find_assigner
    from pz_policymap.wrappers.multi_agent_vector import PolicyMapMultiAgentVector as PolicyMapMultiAgentVector
    from pz_policymap.wrappers.parallel import PolicyMapParallel as PolicyMapParallel
    from pz_policymap.wrappers.single_agent import PolicyMapEnv as PolicyMapEnv
    from pz_policymap.wrappers.vector import PolicyMapVector as PolicyMapVector
    from pz_policymap.wrappers.wrap import env_fns as env_fns
    from pz_policymap.wrappers.wrap import wrap as wrap

__version__ = "0.1.0"

# Each name is imported on first use, so that importing the package is cheap and an adapter does not need packages
# that its framework cannot install. The order is that of the documentation.
_HOME = {
    "wrap": "wrappers.wrap",
    "env_fns": "wrappers.wrap",
    "PolicyMapAEC": "wrappers.aec",
    "PolicyMapParallel": "wrappers.parallel",
    "PolicyMapEnv": "wrappers.single_agent",
    "PolicyMapVector": "wrappers.vector",
    "PolicyMapMultiAgentVector": "wrappers.multi_agent_vector",
    "find_assigner": "wrappers.find",
    "Uniform": "mappings.uniform",
    "Weighted": "mappings.weighted",
    "Fixed": "mappings.fixed",
    "ByEnvIndex": "mappings.fixed",
    "FromFunction": "mappings.from_function",
    "Shared": "mappings.shared",
    "Teams": "mappings.teams",
    "Roles": "mappings.roles",
    "Focal": "mappings.focal",
    "PerWorker": "mappings.per_worker",
    "Balanced": "mappings.balanced",
    "RoundRobin": "mappings.round_robin",
    "PolicyMapping": "mappings.base",
    "mapping_from_text": "mappings.text",
    "Draw": "randomness.draw",
    "EnvDraw": "randomness.draw",
    "record_results": "recording.record",
    "finished_episodes": "recording.finished",
    "Episode": "results.episode",
    "Payoff": "results.payoff",
    "PolicyStatistics": "results.statistics",
    "policy_results": "results.clustered_results",
    "seat_results": "results.clustered_results",
    "cooperation": "results.cooperation",
    "pfsp": "results.weights",
    "latest": "results.weights",
    "delta_uniform": "results.weights",
    "nash": "results.meta_strategies",
    "alpha_rank": "results.meta_strategies",
    "SnapshotPool": "pool.snapshot_pool",
    "PoolLearner": "pool.learner_settings",
    "PolicyGroups": "batching.policy_groups",
    "act": "batching.act",
    "RecurrentState": "batching.recurrent_state",
    "LearnerEnv": "learner.learner_env",
    "LearnerVectorEnv": "learner.vector",
    "play": "evaluation.play",
    "PlayResult": "evaluation.play_result",
    "tournament": "evaluation.tournament",
    "TournamentResult": "evaluation.tournament_result",
    "read_tournament": "evaluation.tournament_result",
    "Entrant": "policies.entrant",
    "PolicyAssigner": "assigner",
    "assignments": "assignment",
    "save": "checkpoint",
    "load": "checkpoint",
}

_MODULES = ("plots",)

__all__ = [*_HOME, *_MODULES]  # noqa: PLE0604


if not TYPE_CHECKING:  # a type checker would take any name for Any

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return import_module(f"{__name__}.{name}")
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
