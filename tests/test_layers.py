"""A room imports only rooms on lower floors; solver, graph and print stay in theirs."""

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from each import each

ROOT = Path(__file__).resolve().parents[1]
PICTURE = (ROOT / "docs" / "architecture.md").read_text()


def floors(picture: str) -> dict[int, tuple[bool, list[str]]]:
    """Rooms of every floor, and True where a star says that they see each other not."""
    found: dict[int, tuple[bool, list[str]]] = {}
    lines = re.findall(r"^ *(\d*)(\*?) \| (\w+) ", picture, flags=re.MULTILINE)
    floor = -1
    for number, star, name in lines:
        floor = int(number) if number else floor
        rooms = found.setdefault(floor, (bool(star), []))[1]
        rooms.append(name if name in OUTSIDE else f"planner.{name}")
    return found


OUTSIDE = {"planner"}
"""Rooms whose names in the picture are whole."""
PICTURED = floors(PICTURE)
FLOORS = {room: floor for floor, (_, rooms) in PICTURED.items() for room in rooms}
NOT_EACH_OTHER = {floor for floor, (apart, _) in PICTURED.items() if apart}
"""Floors whose rooms do not see each other; errors serves the rest of its floor."""
TYPES_ONLY = {
    "planner.cost",
    "planner.search",
    "planner.verify",
}
"""Rooms that receive a framework and never learn its name."""
TARGETS = "planner.launch.targets."
"""Package of the writers and readers, each loaded when its target is asked for."""
CATALOGUE = ROOT / "planner" / "models" / "families"
"""One file for each family of models."""
GRAPH = {"planner.eager.engine.autograd", "planner.eager.engine.tape"}
"""Nodes and tape that tensors name as types: PyTorch's graph is such a ring."""
SOLVER = ROOT / "planner" / "search" / "solver"
SOURCES = sorted(ROOT.glob("planner/**/*.py"))


def room(module: str) -> str:
    """Room of a module: the folder, or the module, that lies inside ``planner``."""
    parts = module.split(".")
    return ".".join(parts[:2]) if parts[0] == "planner" else parts[0]


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Nodes of a module that import, call or raise."""
    kept = (ast.Import, ast.ImportFrom, ast.Call, ast.Raise)
    every = ast.walk(ast.parse(path.read_text()))
    return tuple(node for node in every if isinstance(node, kept))


@cache
def imports(path: Path) -> tuple[str, ...]:
    return tuple(named(path))


def named(path: Path) -> Iterator[str]:
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import hides its room"
            assert node.module is not None
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (n if is_module(n) else node.module for n in names)


def is_module(name: str) -> bool:
    path = ROOT / name.replace(".", "/")
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def forbidden(here: str, there: str) -> bool:
    if there in {here, "planner"}:
        return False
    if FLOORS[here] == FLOORS[there] and FLOORS[here] in NOT_EACH_OTHER:
        return True
    if there == "planner.frameworks" and here in TYPES_ONLY:
        return True
    return FLOORS[there] > FLOORS[here]


@each("path", SOURCES)
def test_a_module_imports_only_rooms_below_its_own(path: Path) -> None:
    here = room(module_of(path))
    here = "planner" if here == "planner.__init__" else here
    assert here in FLOORS, f"give {here} a floor"
    ours = {room(m) for m in imports(path) if m.split(".")[0] == "planner"}
    assert [there for there in sorted(ours) if forbidden(here, there)] == []


def test_the_code_of_targets_is_found_by_the_registry_alone() -> None:
    named = [
        (module_of(path), module)
        for path in SOURCES
        for module in imports(path)
        if module.startswith(TARGETS) and not module_of(path).startswith(TARGETS)
    ]
    assert named == []


def test_no_writer_is_loaded_with_the_frameworks() -> None:
    """Search and verifier start without the code that writes and reads files."""
    script = """if True:
        import sys
        import planner.frameworks
        print(*(name for name in sys.modules if name.startswith("planner.")))
    """
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    loaded = ran.stdout.split()
    assert "planner.frameworks.megatron.bridge.lacks" in loaded
    assert [name for name in loaded if room(name) == "planner.launch"] == []


def test_a_folder_has_at_most_fifteen_modules() -> None:
    counts = Counter(path.parent for path in SOURCES if path.parent != CATALOGUE)
    assert [f"{where}: {n}" for where, n in counts.items() if n > 15] == []
    loose = [path.stem for path in (ROOT / "planner").glob("*.py")]
    assert len(loose) <= 4, loose


def cycles(edges: dict[str, set[str]]) -> str:
    """Modules that import each other in a ring; empty where none do."""
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        return " -> ".join(error.args[1])
    return ""


def test_no_modules_import_each_other() -> None:
    """Imports for types alone count; the autograd graph points at its own tape."""
    edges = {module_of(path): set(imports(path)) - GRAPH for path in SOURCES}
    assert cycles(edges) == ""
    assert cycles({"a": {"b"}, "b": {"a"}}) != ""


def test_no_rooms_import_each_other() -> None:
    """A room counts as it lies, with all that is in it."""
    edges = {room(module_of(path)): set[str]() for path in SOURCES}
    for path in SOURCES:
        here = room(module_of(path))
        edges[here] |= {room(module) for module in imports(path)} - {here}
    assert cycles(edges) == ""


@each("path", SOURCES)
def test_the_solver_and_the_graph_are_in_one_place(path: Path) -> None:
    top = {module.split(".")[0] for module in imports(path)}
    assert "ortools" not in top or path.parent == SOLVER
    assert "networkx" not in top or module_of(path) == "planner.hardware.graph.topology"


def test_every_room_of_the_picture_is_there() -> None:
    rooms = {room(module_of(path)) for path in SOURCES} - {"planner.__init__"}
    assert set(FLOORS) - {"planner"} == rooms


def test_a_picture_gives_each_room_its_floor() -> None:
    """A line without a number is one more room of the floor above it."""
    picture = "floor | room\n   2* | cost   prices\n      | models families\n"
    picture += "    0 | hardware facts\n"
    two = (True, ["planner.cost", "planner.models"])
    assert floors(picture) == {2: two, 0: (False, ["planner.hardware"])}


def prints_or_exits(node: ast.AST) -> bool:
    """Calls print or an exit, or raises SystemExit."""
    if isinstance(node, ast.Raise):
        return node.exc is not None and "SystemExit" in ast.unparse(node.exc)
    return isinstance(node, ast.Call) and ast.unparse(node.func) in {
        "print",
        "exit",
        "quit",
        "sys.exit",
        "os._exit",
        "sys.stdout.write",
        "sys.stderr.write",
    }


def test_only_the_command_line_prints_or_exits() -> None:
    outside = [p for p in SOURCES if room(module_of(p)) != "planner.cli"]
    guilty = [
        f"{module_of(path)}:{getattr(node, 'lineno', 0)}"
        for path in outside
        for node in nodes(path)
        if prints_or_exits(node)
    ]
    assert guilty == []


def test_the_rules_see_what_they_forbid() -> None:
    assert forbidden("planner.cost", "planner.search")
    assert forbidden("planner.cost", "planner.frameworks")
    assert forbidden("planner.models", "planner.schedules")
    assert forbidden("planner.hardware", "planner.specs")
    assert not forbidden("planner.cli", "planner.report")
    assert room("planner.launch.targets.megatron.writer") == "planner.launch"
    assert room("planner.frameworks.megatron.launch.lacks") == "planner.frameworks"
    assert forbidden("planner.frameworks", "planner.launch")
    (call,) = ast.parse("print(1)").body
    assert prints_or_exits(call.value)
    assert prints_or_exits(ast.parse("raise SystemExit(2)").body[0])
