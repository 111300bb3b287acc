"""Nodes of a plan as data of its folder, where the plan names pools."""

from collections import Counter
from collections.abc import Iterator
from itertools import accumulate

from planner.launch.brief import Brief, LaunchFile
from planner.launch.placement import Nodes
from planner.launch.text.render import render

NODES, PLACE = "nodes.txt", "place.sh"
NO_HOST = "-"
"""Host of a node that the user has not filled in. [text]"""
_HEAD = (
    "# Nodes in the order of their ranks, and the pool that each has to be of.",
    "# Fill in hosts in place of -, and each node finds its rank and its master here;",
    "# without them set NODE_RANK and MASTER_ADDR. A gpu of - is not checked.",
)
_TITLES = ("#node", "gpus", "gpu", "host", "pool")


def placement_files(brief: Brief) -> tuple[LaunchFile, ...]:
    """List the nodes of every pool, with the script by which a node finds its row."""
    if not brief.layout.pools:
        return ()
    rows = [_TITLES, *(row for its in brief.placement for row in _rows(its))]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            word.ljust(width) for word, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in rows
    ]
    text = "\n".join([*_HEAD, *lines]) + "\n"
    return LaunchFile(NODES, text), LaunchFile(PLACE, render("place.sh.j2"))


def _rows(its: Nodes) -> Iterator[tuple[str, ...]]:
    for node in range(its.first, its.first + its.count):
        yield str(node), str(its.gpus), its.cluster.gpu.name, NO_HOST, its.pool


def ranks_of(text: str) -> dict[str, str]:
    """All ranks of a list of nodes, as variables of launch.sh for one large node."""
    ranks = sum(int(row[1]) for row in _read(text))
    return {"NNODES": "1", "GPUS_PER_NODE": str(ranks)} if ranks else {}


def pools_of(text: str, pp: int) -> list[dict[str, object]]:
    """Pools of a list of nodes, with the pipeline ranks that each hosts.

    Returns:
        Fields of a layout's pools, in the order of ranks; none without a list, or
        where a pool does not host whole pipeline ranks. [-]
    """
    ranks = Counter[str]()
    for _, gpus, _, _, pool in _read(text):
        ranks[pool] += int(gpus)
    each, rest = divmod(ranks.total(), pp)
    if rest or any(its % (each or 1) for its in ranks.values()):
        return []
    ends = accumulate(its // each for its in ranks.values())
    return [
        {"pool": pool, "stages": list(range(end - its // each, end))}
        for (pool, its), end in zip(ranks.items(), ends, strict=True)
    ]


def _read(text: str) -> list[list[str]]:
    """Rows of a list of nodes; none where a row is none. [text]."""
    lines = (line.strip() for line in text.splitlines())
    rows = [line.split(maxsplit=4) for line in lines if line and line[0] != "#"]
    good = all(len(row) == len(_TITLES) and row[1].isdecimal() for row in rows)
    return rows if good else []
