"""Results of many tasks, each kept on disk as soon as it is there."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from planner.planning.comparison.store import Store

Runner = Callable[[Callable[[Any], Any], Sequence[Any]], Iterator[tuple[int, Any]]]
"""Does one thing with many arguments, and hands back results as they are done."""
Told = TypeVar("Told", bound=BaseModel)


def results_of(
    work: Callable[[Any], Told | None],
    tasks: Sequence[Any],
    keys: Sequence[str],
    kind: type[Told],
    run: Runner,
    store: Store,
    told: Callable[[int, int], object],
) -> list[Told]:
    """Results of all tasks; those on disk are read, the others done and kept.

    Args:
        work: Does one task. [-]
        tasks: The tasks. [-], shape (tasks,)
        keys: Name of each task's answer in the store. [text], shape (tasks,)
        kind: Type of the results. [-]
        run: Does the work: on all cores, or on a Dask cluster. [-]
        store: Keeps finished results. [-]
        told: Called with tasks done and tasks in all. [-]
    """
    found: dict[int, Told] = {}
    for at, key in enumerate(keys):
        if (kept := _read(store, key, kind)) is not None:
            found[at] = kept
    left = [at for at in range(len(tasks)) if at not in found]
    told(len(found), len(tasks))
    for index, result in run(work, [tasks[at] for at in left]) if left else ():
        if result is not None:
            found[left[index]] = result
            if not _is_cut(result):
                store.keep(keys[left[index]], result.model_dump_json(by_alias=True))
        told(len(found), len(tasks))
    return [found[at] for at in sorted(found)]


def _read(store: Store, key: str, kind: type[Told]) -> Told | None:
    """A kept result; None where it is absent or cannot be read."""
    text = store.read(key)
    if text is None:
        return None
    try:
        return kind.model_validate_json(text)
    except ValidationError:
        return None


def _is_cut(result: BaseModel) -> bool:
    """True where the user's time limit ended a search: another run may find more."""
    return bool(getattr(result, "out_of_time", False))
