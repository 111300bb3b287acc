"""One test of many values, which tells every value that fails."""

import inspect
from collections.abc import Callable, Iterable
from typing import Any

Test = Callable[..., None]


Values = Iterable[Any] | Callable[[], Iterable[Any]]


def each(names: str | tuple[str, ...], values: Values) -> Callable[[Test], Test]:
    """Run a test with every value in turn; as `pytest.mark.parametrize`, in one item.

    Args:
        names: Name of the test's argument, or names of several. [text]
        values: Values of the argument, or rows of several; or a function that makes
            them when the test runs. [-]

    Returns:
        The decorator.
    """
    keys = (names,) if isinstance(names, str) else names
    kept = values if callable(values) else list(values)

    def merge(test: Test) -> Test:
        def every(**fixtures: Any) -> None:
            made = kept() if callable(kept) else kept
            rows = [(v,) if isinstance(names, str) else tuple(v) for v in made]
            assert rows, "no value"
            failed = [wrong for row in rows if (wrong := tried(row, fixtures))]
            assert not failed, "\n".join(failed)

        def tried(row: tuple[Any, ...], fixtures: dict[str, Any]) -> str:
            try:
                test(**dict(zip(keys, row, strict=True)), **fixtures)
            except Exception as wrong:  # noqa: BLE001  # told with all others
                return f"{row}: {type(wrong).__name__}: {wrong}"
            return ""

        every.__dict__.update(test.__dict__)
        every.__name__, every.__doc__ = test.__name__, test.__doc__
        every.__module__, every.__qualname__ = test.__module__, test.__qualname__
        asked = inspect.signature(test)
        left = [p for name, p in asked.parameters.items() if name not in keys]
        every.__signature__ = asked.replace(parameters=left)  # type: ignore[attr-defined]
        return every

    return merge
