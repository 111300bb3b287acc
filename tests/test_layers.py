"""A room imports only rooms on lower floors; solver, graph and print stay in theirs."""

import ast
from collections.abc import Iterator
from pathlib import Path

from each import each

ROOT = Path(__file__).resolve().parents[1]
FLOORS = {
    "hardware": 0,
    "planner": 0,
    "planner.errors": 1,
    "planner.specs": 1,
    "planner.largest": 1,
    "planner.models": 2,
    "planner.schedules": 2,
    "planner.eager": 2,
    "planner.frameworks": 3,
    "planner.cost": 3,
    "planner.inference": 3,
    "planner.search": 4,
    "planner.verify": 4,
    "planner.calibration_file": 5,
    "planner.calibrated": 5,
    "planner.expressible": 5,
    "planner.methods": 5,
    "planner.wire": 4,
    "planner.precisions": 4,
    "planner.variants": 5,
    "planner.fleets": 5,
    "planner.resolve": 5,
    "planner.reasons": 5,
    "planner.infeasible": 6,
    "planner.idle": 6,
    "planner.sanity": 6,
    "planner.ties": 6,
    "planner.predict": 6,
    "planner.frugal": 5,
    "planner.alternatives": 6,
    "planner.memory": 7,
    "planner.optimize": 7,
    "planner.economics": 7,
    "planner.explain": 7,
    "planner.evidence": 7,
    "planner.comparison": 8,
    "planner.report": 8,
    "planner.launch": 8,
    "planner.cli": 9,
    "planner.__main__": 10,
}
NOT_EACH_OTHER = {0, 2, 4}
"""Floors whose rooms do not see each other; errors serves the rest of its floor."""
TYPES_ONLY = {"planner.cost", "planner.search", "planner.verify"}
"""Rooms that receive a framework and never learn its name."""
SOURCES = sorted([*ROOT.glob("hardware/**/*.py"), *ROOT.glob("planner/**/*.py")])


def room(module: str) -> str:
    parts = module.split(".")
    return ".".join(parts[:2]) if parts[0] == "planner" else parts[0]


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import hides its room"
            assert node.module is not None
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            known = node.module == "planner"
            yield from (n if known and n in FLOORS else node.module for n in names)


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
    ours = {
        room(m) for m in imports(path) if m.split(".")[0] in {"hardware", "planner"}
    }
    assert [there for there in sorted(ours) if forbidden(here, there)] == []


@each("path", SOURCES)
def test_the_solver_and_the_graph_are_in_one_place(path: Path) -> None:
    top = {module.split(".")[0] for module in imports(path)}
    assert "ortools" not in top or room(module_of(path)) == "planner.search"
    assert "networkx" not in top or module_of(path) == "hardware.topology"


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
        for node in ast.walk(ast.parse(path.read_text()))
        if prints_or_exits(node)
    ]
    assert guilty == []


def test_the_rules_see_what_they_forbid() -> None:
    assert forbidden("planner.cost", "planner.search")
    assert forbidden("planner.cost", "planner.frameworks")
    assert forbidden("planner.models", "planner.schedules")
    assert forbidden("hardware", "planner.specs")
    assert not forbidden("planner.cli", "planner.report")
    (call,) = ast.parse("print(1)").body
    assert prints_or_exits(call.value)
    assert prints_or_exits(ast.parse("raise SystemExit(2)").body[0])
