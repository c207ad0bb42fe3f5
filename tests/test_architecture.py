"""Tests the structure of the package: the order of imports, cheap imports, and public names."""

import ast
import importlib
import pkgutil
import subprocess
import sys
from graphlib import TopologicalSorter
from importlib.util import find_spec
from pathlib import Path

import pytest

import pz_policymap as pm

ROOT = Path(pm.__file__).parent
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in ROOT.rglob("*.py")
    if path.name not in ("__init__.py", "__main__.py")
)

# Lowest first: a room imports from rooms above it in this list, and from itself.
ROOMS = (
    "arguments",
    "cadence",
    "checkpoint",
    "batching",
    "results",
    "randomness",
    "mappings",
    "assignment",
    "assigner_state",
    "assigner",
    "wrappers",
    "pool",
    "policies",
    "recording",
    "learner",
    "plots",
    "evaluation",
    "checking",
    "adapters",
    "cli",
)
CORE = {"gymnasium", "numpy", "pettingzoo", "typing_extensions"}
EXTRAS = {"cli": {"matplotlib", "rich"}, "evaluation": {"matplotlib"}, "results": {"scipy"}, "plots": {"matplotlib"}}
KNOW_NO_ENVIRONMENT = ("arguments", "cadence", "checkpoint", "batching", "results", "randomness", "mappings", "plots")


def room(module):
    """Returns the room of a module: the folder or file directly below the package."""
    return module.split(".")[0]


def imports(module):
    """Yields all imports of a module, also inside functions, except those for type checkers only."""
    tree = ast.parse((ROOT / module.replace(".", "/")).with_suffix(".py").read_text(encoding="utf-8"))
    typing_only = {
        id(child)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        for child in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def test_rooms_are_all_in_the_order():
    assert {room(module) for module in MODULES} == set(ROOMS)


@pytest.mark.parametrize("module", MODULES)
def test_imports_between_rooms_run_one_way(module):
    for name in imports(module):
        package, _, inner = name.partition(".")
        if package == "pz_policymap" and inner:
            assert ROOMS.index(room(inner)) <= ROOMS.index(room(module)), f"{module} imports {inner}, a higher room"


def test_imports_inside_rooms_have_no_cycle():
    graph = {}
    for module in MODULES:
        inner = {name.removeprefix("pz_policymap.") for name in imports(module) if name.startswith("pz_policymap.")}
        graph[module] = inner & set(MODULES)
    list(TopologicalSorter(graph).static_order())  # raises a CycleError


def test_top_level_folders_are_the_package_its_tests_and_its_examples():
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT.parent, capture_output=True, text=True, check=False).stdout
    folders = {line.split("/")[0] for line in tracked.splitlines() if "/" in line and not line.startswith(".")}
    assert folders <= {"pz_policymap", "tests", "examples"}


@pytest.mark.parametrize("module", MODULES)
def test_file_over_300_lines_states_a_reason(module):
    text = (ROOT / module.replace(".", "/")).with_suffix(".py").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 300 or "This file is long because" in (ast.get_docstring(ast.parse(text)) or "")


@pytest.mark.parametrize("module", MODULES)
def test_imports_outside_extras_are_core_dependencies(module):
    foreign = {name.split(".")[0] for name in imports(module)} - set(sys.stdlib_module_names) - {"pz_policymap"}
    allowed = CORE | EXTRAS.get(room(module), set())
    if not module.startswith("adapters"):
        assert foreign <= allowed


@pytest.mark.parametrize("module", [m for m in MODULES if room(m) in KNOW_NO_ENVIRONMENT])
def test_core_imports_no_environment_library(module):
    assert not {name.split(".")[0] for name in imports(module)} & {"gymnasium", "pettingzoo"}


def loaded_by(statement):
    code = f"import sys; before = set(sys.modules); {statement}; print(*set(sys.modules) - before)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_import_of_the_package_is_lazy():
    heavy = {"numpy", "gymnasium", "pettingzoo"}
    assert not loaded_by("import pz_policymap") & heavy


def test_mappings_and_the_assigner_do_not_import_gymnasium_or_pettingzoo():
    modules = loaded_by("from pz_policymap import PolicyAssigner, Uniform, Weighted, FromFunction, save, load")
    assert not modules & {"gymnasium", "pettingzoo"}


def test_public_names_exist_and_are_documented():
    assert sorted(pm.__all__) == sorted(set(pm.__all__))
    for name in pm.__all__:
        value = getattr(pm, name)
        assert name in dir(pm)
        assert value.__doc__, name
        home = value.__name__ if name in pm._MODULES else value.__module__
        assert home.startswith("pz_policymap."), name


def test_names_for_type_checkers_equal_names_at_run_time():
    tree = ast.parse((ROOT / "__init__.py").read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    typed = {(f"{node.module}", alias.asname) for node in block.body for alias in node.names}
    modules = {("pz_policymap", name) for name in pm._MODULES}
    assert typed == {(f"pz_policymap.{home}", name) for name, home in pm._HOME.items()} | modules


def test_unknown_name_raises_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Uniforn'"):
        pm.Uniforn  # noqa: B018


def test_public_module_is_imported_on_first_use():
    code = (
        "import sys, pz_policymap as pm; first = 'pz_policymap.plots' in sys.modules; print(first, pm.plots.__name__)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False", "pz_policymap.plots"]
    assert pm.__getattr__("plots") is importlib.import_module("pz_policymap.plots")


def test_modules_have_docstrings_and_can_be_imported_alone():
    for info in pkgutil.walk_packages(pm.__path__, "pz_policymap."):
        if not info.name.startswith(("pz_policymap.adapters.", "pz_policymap.__main__")):
            assert importlib.import_module(info.name).__doc__, info.name


@pytest.mark.parametrize("module", MODULES)
def test_package_contains_no_assert(module):
    tree = ast.parse((ROOT / module.replace(".", "/")).with_suffix(".py").read_text(encoding="utf-8"))
    assert not [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Assert)]


@pytest.mark.skipif(find_spec("ray") is not None, reason="ray is installed")
def test_import_without_ray_names_the_install_command():
    with pytest.raises(ImportError, match=r"pip install 'ray\[rllib\]"):
        importlib.import_module("pz_policymap.adapters.rllib")
