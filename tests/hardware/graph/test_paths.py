"""Paths through a graph are as short as those of NetworkX."""

from itertools import combinations, pairwise

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from hardware.graph.paths import Vertex, shortest_path

NODES: list[Vertex] = [("gpu", number) for number in range(9)]


@given(st.sets(st.sampled_from(list(combinations(NODES, 2)))))
def test_no_path_is_shorter(edges: set[tuple[Vertex, Vertex]]) -> None:
    ring = zip(NODES, [*NODES[1:], NODES[0]], strict=True)
    graph: nx.Graph[Vertex] = nx.Graph([*ring, *edges])
    routes = {node: dict.fromkeys(graph[node], 1.0) for node in graph}
    for one, other in combinations(NODES, 2):
        path = shortest_path(routes, one, other)
        assert (path[0], path[-1]) == (one, other)
        assert all(graph.has_edge(*step) for step in pairwise(path))
        assert len(path) - 1 == nx.shortest_path_length(graph, one, other)


def test_a_node_is_its_own_path() -> None:
    assert shortest_path({NODES[0]: {}}, NODES[0], NODES[0]) == [NODES[0]]
