"""Answers that were given, the latest of them, in the memory of the server."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Store(Generic[T]):
    """The latest values by key."""

    def __init__(self, most: int) -> None:
        """Set the limit."""
        self.most = most
        self._kept: OrderedDict[Hashable, T] = OrderedDict()

    def get(self, key: Hashable) -> T | None:
        """Look a value up.

        Returns:
            The value; None where it is not kept. [-]
        """
        if key in self._kept:
            self._kept.move_to_end(key)
        return self._kept.get(key)

    def put(self, key: Hashable, value: T) -> None:
        """Keep a value, and drop the one that was not asked for longest."""
        self._kept[key] = value
        self._kept.move_to_end(key)
        while len(self._kept) > self.most:
            self._kept.popitem(last=False)
