"""Plans how to lay out an LLM training run on a cluster, with a proof."""

from importlib import import_module

__version__ = "0.1.0"

_HOMES = {
    "Calibration": "planner.questions.calibrate",
    "Comparison": "planner.questions.compare",
    "Difference": "planner.questions.diff",
    "Explained": "planner.questions.explain",
    "InferenceMemory": "planner.questions.memory",
    "Job": "planner.questions.inputs.given",
    "PlannerError": "planner.errors",
    "Prediction": "planner.questions.predict",
    "Progress": "planner.planning.optimize",
    "Result": "planner.questions.plan",
    "Size": "planner.questions.size",
    "StopSearch": "planner.questions.inputs.progress",
    "Sweep": "planner.questions.sweep",
    "TrainingMemory": "planner.questions.memory",
    "Tuning": "planner.questions.tune",
    "Validation": "planner.questions.validate",
    "calibrate": "planner.questions.calibrate",
    "compare": "planner.questions.compare",
    "diff": "planner.questions.diff",
    "explain": "planner.questions.explain",
    "memory": "planner.questions.memory",
    "plan": "planner.questions.plan",
    "predict": "planner.questions.predict",
    "size": "planner.questions.size",
    "sweep": "planner.questions.sweep",
    "tune": "planner.questions.tune",
    "validate": "planner.questions.validate",
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
