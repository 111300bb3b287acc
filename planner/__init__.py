"""Plans how to lay out an LLM training run on a cluster, with a proof."""

from importlib import import_module

__version__ = "0.1.0"

_HOMES = {
    "Calibration": "planner.api.calibrate",
    "Comparison": "planner.api.compare",
    "Difference": "planner.api.diff",
    "Explained": "planner.api.explain",
    "InferenceMemory": "planner.api.memory",
    "Job": "planner.api.given",
    "PlannerError": "planner.errors",
    "Prediction": "planner.api.predict",
    "Progress": "planner.planning.optimize",
    "Result": "planner.api.plan",
    "Size": "planner.api.size",
    "StopSearch": "planner.api.progress",
    "Sweep": "planner.api.sweep",
    "TrainingMemory": "planner.api.memory",
    "Tuning": "planner.api.tune",
    "Validation": "planner.api.validate",
    "calibrate": "planner.api.calibrate",
    "compare": "planner.api.compare",
    "diff": "planner.api.diff",
    "explain": "planner.api.explain",
    "memory": "planner.api.memory",
    "plan": "planner.api.plan",
    "predict": "planner.api.predict",
    "size": "planner.api.size",
    "sweep": "planner.api.sweep",
    "tune": "planner.api.tune",
    "validate": "planner.api.validate",
}
"""Public name to its module, which is imported when the name is asked for; types of
the names stand in `__init__.pyi`."""
__all__ = ["__version__", *_HOMES]  # noqa: PLE0604  # names are text


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
