"""RLlib's new API stack (Ray 2.60): assigns modules to all agents of an episode at once, on any number of runners.

    from pz_policymap.adapters.rllib import configure

    config = PPOConfig().environment("my_env").env_runners(num_env_runners=2, num_envs_per_env_runner=3)
    configure(config, pm.Uniform(3), seed=0, resample_every=1)      # last: it keeps callbacks and connectors
    algorithm = config.build_algo()

Policy i is the module `policy_i`, or `names[i]`. Environment i of runner w gets the assignments of
`pm.wrap(env, mapping, seed=0, env_index=(w - 1) * num_envs_per_env_runner + i)`.

Episode numbers are saved in RLlib's checkpoints. If a running algorithm restores an older checkpoint, it resumes from
those numbers. Episodes that are running at that moment are finished and not counted.
"""

from importlib.util import find_spec

if find_spec("ray") is None:
    raise ImportError("pz_policymap.adapters.rllib needs Ray: pip install 'ray[rllib]>=2.60,<2.61'")

from pz_policymap.adapters.rllib.configure import configure as configure
from pz_policymap.adapters.rllib.configure import set_mapping as set_mapping
from pz_policymap.adapters.rllib.environments import AECSeats as AECSeats
from pz_policymap.adapters.rllib.environments import ParallelSeats as ParallelSeats
from pz_policymap.adapters.rllib.module_mapping import Assignment as Assignment
from pz_policymap.adapters.rllib.module_mapping import ModuleMapping as ModuleMapping
from pz_policymap.adapters.rllib.self_play import SelfPlay as SelfPlay
