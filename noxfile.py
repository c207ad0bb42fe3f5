"""Jobs that run in their own environments: `nox --list`."""

import os
import shutil
from pathlib import Path

import nox

nox.options.default_venv_backend = "virtualenv"
nox.options.error_on_missing_interpreters = True
# The jobs of CI. `oldest` and `mutants` are run by hand.
nox.options.sessions = [
    "stable_baselines3", "rllib", "coverage", "torch", "agilerl", "vmas", "jax", "tianshou", "torchrl",
    "sample_factory", "dask", "ray", "lowest", "pythons", "examples", "package", "docs", "benchmarks",
]  # fmt: skip

TORCH = "torch==2.13.0"
JAX = "jax==0.10.2"
NEED_A_FRAMEWORK = {
    "agilerl_recipe", "rllib_league", "rllib_population", "sb3_self_play", "tianshou_recipe", "torchrl_recipe",
    "train_population_ppo",
}  # fmt: skip
TEST_TOOLS = ("cloudpickle", "hypothesis", "joblib", "pytest", "pytest-xdist", "rich", "scipy")

# Tests of what depends on the versions of Python and NumPy: bits, arrays, states, and each kind of wrapper.
CORE_TESTS = tuple(
    f"tests/{name}"
    for name in (
        "contract/test_golden.py", "mappings", "randomness", "results", "test_assigner.py", "test_cadence.py",
        "test_checkpoint.py", "wrappers/test_pettingzoo_wrappers.py", "wrappers/test_single_agent.py",
        "wrappers/test_vector.py",
    )
)  # fmt: skip

# pyenv hides all but one of its interpreters unless PYENV_VERSION lists them.
PYENV = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
os.environ.setdefault("PYENV_VERSION", ":".join(sorted(path.name for path in PYENV.glob("3.*"))) or "system")


@nox.session
def oldest(session: nox.Session) -> None:
    """Runs all tests with the oldest versions of the dependencies that pyproject.toml allows."""
    core = ("gymnasium==1.0.0", "pettingzoo==1.25.0", "numpy==1.26.4", "matplotlib==3.7.0")
    session.install(
        *core, "mpe2", "supersuit", "chess", "rlcard", *TEST_TOOLS
    )  # without Box2D, which would have to be compiled
    session.install("--no-deps", ".")
    session.run("python", "-m", "pytest", "--quiet", "--numprocesses", "auto", "tests", *session.posargs)


@nox.session(python=["3.10"], venv_backend="uv")
def lowest(session: nox.Session) -> None:
    """Runs the core tests with the lowest versions that pyproject.toml allows, as resolved by uv."""
    _core_tests(session, "lowest-direct")


@nox.session(python=["3.10", "3.12", "3.13"], venv_backend="uv")
def pythons(session: nox.Session) -> None:
    """Runs the core tests on other Python versions; a missing interpreter is an error."""
    _core_tests(session, "highest")


def _core_tests(session: nox.Session, resolution: str) -> None:
    """Resolves pyproject.toml with uv, and runs the core tests with the result."""
    found = str(Path(session.create_tmp()) / "core.txt")
    options = ("--quiet", "--no-header", "--python", str(session.python), "--output-file", found)
    session.run_install("uv", "pip", "compile", "--resolution", resolution, *options, "pyproject.toml")
    session.install("--requirements", found)
    session.install("--constraints", found, "mpe2", "supersuit", *TEST_TOOLS)
    session.install("--no-deps", ".")
    session.run("python", "-m", "pytest", "--quiet", "--numprocesses", "auto", *CORE_TESTS, *session.posargs)


@nox.session
def coverage(session: nox.Session) -> None:
    """Checks that the tests execute every branch; slow tests that add no branch are left out."""
    session.install("--editable", ".[test]", TORCH, JAX)  # with tensors and JAX arrays
    slow = (
        "wrappers/test_registry", "contract/test_killed_run", "contract/test_long_runs", "contract/test_scale",
        "contract/test_many_workers", "randomness/test_draw_statistics", "examples/test_self_play",
    )  # fmt: skip
    left_out = (f"--ignore=tests/{name}.py" for name in slow)
    session.run("python", "-m", "pytest", "--quiet", "--numprocesses", "auto", "--cov", *left_out, *session.posargs)


@nox.session
def mutants(session: nox.Session) -> None:
    """Fails if 5% or more of the mutants of the core survive the tests; about an hour on two cores."""
    session.install(".[test]", "mutmut==3.8.1")
    session.run("python", "-m", "pip", "uninstall", "--quiet", "--yes", "pz-policymap")  # mutmut tests its own copies
    session.run("python", "tests/mutants.py", *session.posargs)


@nox.session
def sample_factory(session: nox.Session) -> None:
    """Tests the Sample Factory adapter in the real framework, which pins older versions of everything."""
    session.install("sample-factory==2.1.1", TORCH, "numpy<2", "pytest", "pytest-benchmark", "rich")
    session.install("--no-deps", ".")
    options = ("--override-ini=addopts=", "--import-mode=importlib", "--benchmark-quiet", "-k", "sample_factory")
    adapter = ("--doctest-modules", "pz_policymap/adapters/sample_factory.py")
    tests = ("tests/frameworks/test_sample_factory.py", "tests/benchmarks/test_drawing.py")
    session.run("python", "-m", "pytest", "-q", *options, *adapter, *tests)


@nox.session
def rllib(session: nox.Session) -> None:
    """Tests the RLlib adapter on a local Ray cluster, through restarts and checkpoints; takes some minutes."""
    session.install("ray[rllib]==2.60.0", TORCH, "mpe2", "pettingzoo", "pytest", "pytest-benchmark", "rich", "pdoc>=15")
    session.install("--no-deps", ".")
    options = ("--override-ini=addopts=", "--import-mode=importlib", "--doctest-modules")
    tests = [f"tests/frameworks/test_rllib{part}.py" for part in ("", "_self_play")]
    session.run("python", "-m", "pytest", "-q", *options, *tests, "pz_policymap/adapters/rllib", *session.posargs)
    session.run("python", "examples/rllib_league.py")
    measured = ("--benchmark-quiet", "-k", "rllib", "tests/benchmarks/test_drawing.py")
    session.run("python", "-m", "pytest", "-q", *options, *measured)
    _pages(session, "error::UserWarning:pdoc", "pz_policymap.adapters.rllib")  # cannot be imported without Ray


@nox.session
def dask(session: nox.Session) -> None:
    """Tests tournaments on a local Dask cluster."""
    _jobs(session, "dask", "dask[distributed]==2026.8.0")


@nox.session
def ray(session: nox.Session) -> None:
    """Tests tournaments on a local Ray cluster."""
    _jobs(session, "ray", "ray==2.60.0")


def _jobs(session: nox.Session, name: str, requirement: str) -> None:
    """Tests tournaments whose games are played by another backend of joblib."""
    session.install(".[jobs]", requirement, "pettingzoo[classic]", "pytest")
    options = ("--override-ini=addopts=", "--import-mode=importlib")
    folder = {"PYTHONPATH": str(Path(__file__).parent)}  # workers import the policies of the tests
    session.run("python", "-m", "pytest", "-q", *options, f"tests/frameworks/test_jobs_{name}.py", env=folder)


@nox.session
def torch(session: nox.Session) -> None:
    """Tests batches of torch tensors, and the PyTorch example."""
    session.install(".[test]", TORCH)
    session.run("python", "-c", "import torch")  # without torch the tests would be skipped
    tests = ("tests/batching",)
    options = ("--override-ini=addopts=", "--import-mode=importlib")
    session.run("python", "-m", "pytest", "-q", *options, *tests, "tests/frameworks/test_torch_example.py")


@nox.session
def stable_baselines3(session: nox.Session) -> None:
    """Tests `LearnerEnv` and self-play in Stable-Baselines3, and the self-play example."""
    session.install(".[sb3,demo,jobs]", "stable-baselines3==2.9.2", "sb3-contrib==2.9.2", TORCH, "pytest", "pdoc>=15")
    options = ("--override-ini=addopts=", "--import-mode=importlib")
    tests = [f"tests/frameworks/test_stable_baselines3{part}.py" for part in ("", "_self_play")]
    adapter = ("--doctest-modules", "pz_policymap/adapters/stable_baselines3")
    session.run("python", "-m", "pytest", "-q", *options, *adapter, *tests)
    _pages(session, "error::UserWarning:pdoc", "pz_policymap.adapters.stable_baselines3")


@nox.session
def torchrl(session: nox.Session) -> None:
    """Tests the TorchRL recipe: one module holds the population and dispatches on `policy_id`."""
    _recipe(session, "torchrl", "torchrl==0.14.1", TORCH)


@nox.session
def tianshou(session: nox.Session) -> None:
    """Tests the Tianshou recipe: a policy that dispatches on `policy_id` in a turn-based game."""
    _recipe(
        session, "tianshou", "tianshou==2.0.1", TORCH, "pygame-ce", NUMBA_DISABLE_JIT="1"
    )  # compiling takes longer than the run


@nox.session
def agilerl(session: nox.Session) -> None:
    """Tests the AgileRL recipe, one single-agent algorithm per policy, and AgileRL's vectors of PettingZoo games."""
    _recipe(session, "agilerl", "agilerl==2.58.0", "peft==0.21.0", "transformers==5.14.1", TORCH)
    options = ("--override-ini=addopts=", "--import-mode=importlib")
    session.run("python", "-m", "pytest", "-q", *options, "tests/frameworks/test_agilerl.py")


def _recipe(session: nox.Session, name: str, *requirements: str, **env: str) -> None:
    """Tests a recipe in the real framework, and runs it as a script."""
    session.install(*requirements, "mpe2", "pytest")
    session.install(".")
    options = ("--override-ini=addopts=", "--import-mode=importlib")
    env["OMP_NUM_THREADS"] = "1"  # threads slow down networks this small
    session.run("python", "-m", "pytest", "-q", *options, f"tests/frameworks/test_recipes_{name}.py", env=env)
    session.run("python", f"examples/{name}_recipe.py", env=env)


@nox.session
def vmas(session: nox.Session) -> None:
    """Tests VMAS, and a stand-in for Isaac Lab: batched simulators with dicts of tensors."""
    _simulator(
        session, "vmas==1.5.2", "shimmy", TORCH, tests=("frameworks/test_vmas.py", "frameworks/test_isaac_lab.py")
    )


@nox.session
def jax(session: nox.Session) -> None:
    """Tests JAX arrays and a JaxMARL game, outside of `jit` and inside."""
    _simulator(session, "jaxmarl==0.2.0", JAX, tests=("frameworks/test_jax.py", "batching/test_jax_arrays.py"))


def _simulator(session: nox.Session, *requirements: str, tests: tuple[str, ...]) -> None:
    """Tests batched simulators; threads slow down networks this small."""
    session.install(*requirements, "pytest")
    session.install(".")
    options = ("--override-ini=addopts=", "--import-mode=importlib")
    paths = (f"tests/{name}" for name in tests)
    session.run("python", "-m", "pytest", "-q", *options, *paths, env={"OMP_NUM_THREADS": "1"})


@nox.session
def benchmarks(session: nox.Session) -> None:
    """Prints one table of cost ratios with their targets."""
    session.install(".[test]", "pytest-benchmark", "stable-baselines3==2.9.2", TORCH)
    options = ("--override-ini=addopts=", "--import-mode=importlib", "--benchmark-quiet")
    session.run("python", "-m", "pytest", "-q", *options, "tests/benchmarks", *session.posargs)


@nox.session
def examples(session: nox.Session) -> None:
    """Runs all examples that need no framework; the others run in the jobs of their frameworks."""
    session.install(".[demo,nash,plot]")
    for path in sorted(Path("examples").glob("*.py")):
        if path.stem not in NEED_A_FRAMEWORK:
            folder = (
                [session.create_tmp()] if path.stem == "pictures" else []
            )  # do not overwrite those of the repository
            session.run("python", str(path), *folder)


@nox.session
def docs(session: nox.Session) -> None:
    """Builds the API pages in .nox/docs/tmp/pages; a warning is an error."""
    session.install(".[demo,nash,plot]", "pdoc>=15")
    _pages(session, "error", "pz_policymap", "pz_policymap.adapters.sample_factory")


def _pages(session: nox.Session, warnings: str, *modules: str) -> None:
    """Builds the pages of these modules."""
    pages = str(Path(session.create_tmp()) / "pages")
    session.run("python", "-W", warnings, "-m", "pdoc", "--docformat", "google", "-o", pages, *modules)


@nox.session
def package(session: nox.Session) -> None:
    """Checks the distribution: well-formed, only the package inside, works without extras."""
    session.install("build", "twine")
    built = Path(session.create_tmp()) / "dist"
    shutil.rmtree(built, ignore_errors=True)
    session.run("python", "-m", "build", "--outdir", str(built), ".")
    wheel, sdist = next(built.glob("*.whl")), next(built.glob("*.tar.gz"))
    session.run("python", "-m", "twine", "check", "--strict", str(wheel), str(sdist))
    bare = Path(session.create_tmp()) / "bare"
    session.run("python", "-m", "venv", "--clear", str(bare))
    session.run(str(bare / "bin" / "python"), "-m", "pip", "install", "--quiet", str(wheel), external=True)
    session.run(str(bare / "bin" / "python"), "-I", "tests/bare_install.py", str(wheel), external=True)
