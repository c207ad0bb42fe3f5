"""Checks a wheel installed without extras: `python -I tests/bare_install.py pz_policymap-*.whl`."""

import importlib.util
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from pettingzoo.test.example_envs import generated_agents_parallel_v0

import pz_policymap as pm


def main(wheel: str) -> None:
    assert "site-packages" in pm.__file__, f"{pm.__file__} is not from the wheel"
    names = zipfile.ZipFile(wheel).namelist()
    folders = {name.split("/")[0] for name in names}
    assert folders == {"pz_policymap", f"pz_policymap-{pm.__version__}.dist-info"}, folders
    assert "pz_policymap/py.typed" in names
    strange = [name for name in names if not name.endswith((".py", "py.typed")) and "dist-info" not in name]
    assert not strange, strange

    env = pm.wrap(generated_agents_parallel_v0.parallel_env(), 4)
    _, infos = env.reset(seed=0)
    assert all(type(info["policy_id"]) is int for info in infos.values())
    for name in pm.__all__:
        if name != "plots":
            getattr(pm, name)

    for module in ("matplotlib", "rich", "scipy"):
        assert importlib.util.find_spec(module) is None, f"{module} must not be installed for this check"
    assert "pip install scipy" in refusal(lambda: pm.nash(np.array([[0.5, 0.6], [0.4, 0.5]])))

    command = Path(sysconfig.get_path("scripts"), "pz-policymap")
    shown = subprocess.run([command, "--help"], capture_output=True, text=True, check=True).stdout
    assert "preview" in shown, shown
    refused = subprocess.run([command, "preview", "Uniform(4)"], capture_output=True, text=True, check=False)
    assert refused.returncode == 1, refused
    assert "pip install rich" in refused.stderr, refused


def refusal(call: Callable[[], object]) -> str:
    """Returns the error message of a call that needs a missing extra."""
    try:
        call()
    except ImportError as error:
        return str(error)
    raise AssertionError("the call works without its extra")


if __name__ == "__main__":
    main(sys.argv[1])
