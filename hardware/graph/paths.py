"""Shortest paths through the explicit graph of a cluster."""

from collections.abc import Mapping

Vertex = tuple[str, int]
"""A node of the graph: kind and number."""

Routes = Mapping[Vertex, Mapping[Vertex, float]]
"""Neighbours of every node, with the capacity of the edge to each. [B/s]"""


def shortest_path(routes: Routes, start: Vertex, end: Vertex) -> list[Vertex]:
    """Find a path of the fewest edges, searched from both ends.

    Args:
        routes: The graph. [-]
        start: First node. [-]
        end: Last node, which a path leads to. [-]

    Returns:
        Nodes in order, both ends among them. [-]
    """
    ahead, behind = {start: start}, {end: end}
    fronts = [start], [end]
    while not (met := [node for node in fronts[0] if node in behind]):
        if len(fronts[0]) <= len(fronts[1]):
            fronts = _farther(routes, fronts[0], ahead), fronts[1]
        else:
            fronts = fronts[0], _farther(routes, fronts[1], behind)
    there = _back(ahead, met[0])[::-1]
    return there + _back(behind, met[0])[1:]


def _farther(
    routes: Routes, front: list[Vertex], seen: dict[Vertex, Vertex]
) -> list[Vertex]:
    """Nodes one edge beyond the front, noted with the node before each."""
    found = []
    for node in front:
        for near in routes[node]:
            if near not in seen:
                seen[near] = node
                found.append(near)
    return found


def _back(seen: dict[Vertex, Vertex], node: Vertex) -> list[Vertex]:
    """Nodes from one back to where its search began."""
    path = [node]
    while seen[node] != node:
        node = seen[node]
        path.append(node)
    return path
