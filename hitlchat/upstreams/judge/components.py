"""The strongly connected parts of a graph: what can be reached from one another. Without recursion (Kosaraju)."""

from collections.abc import Iterator, Mapping, Sequence


def components(graph: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """A number for each node, the same for those on a common cycle. Every target must be a node."""
    backwards: dict[str, list[str]] = {node: [] for node in graph}
    for node, targets in graph.items():
        for target in targets:
            backwards[target].append(node)
    home: dict[str, int] = {}
    for number, root in enumerate(reversed(_finished(graph))):
        waiting = [root] if root not in home else []
        while waiting:
            node = waiting.pop()
            if node not in home:
                home[node] = number
                waiting.extend(backwards[node])
    return home


def _finished(graph: Mapping[str, Sequence[str]]) -> list[str]:
    """The nodes in the order in which a walk into the depth leaves them."""
    order: list[str] = []
    seen: set[str] = set()
    for root in graph:
        if root in seen:
            continue
        seen.add(root)
        path: list[tuple[str, Iterator[str]]] = [(root, iter(graph[root]))]
        while path:
            node, targets = path[-1]
            following = next((target for target in targets if target not in seen), None)
            if following is None:
                order.append(node)
                path.pop()
            else:
                seen.add(following)
                path.append((following, iter(graph[following])))
    return order
