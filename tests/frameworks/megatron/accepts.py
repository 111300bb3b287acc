"""Says of every command line on standard input whether megatron-core takes it.

A line is JSON: {"world": ranks, "words": [...]}; the answer is one JSON object a line.
"""

import json
import sys

from settings import checked, config_of, parsed


def answer(line: str) -> dict[str, object]:
    """Whether the configuration stands, with the stages that it understood."""
    asked = json.loads(line)
    try:
        args = parsed(asked["words"])
        checked(args, asked["world"])
        config = config_of(args)
    except (SystemExit, AssertionError, ValueError, TypeError) as error:
        return {"accepted": False, "why": str(error)}
    layout = config.pipeline_model_parallel_layout
    return {
        "accepted": True,
        "vpp": config.virtual_pipeline_model_parallel_size or 1,
        "stages": None if layout is None else _counts(layout),
    }


def _counts(layout: object) -> list[int]:
    """Decoder layers of every virtual stage, in model order."""
    rows = layout.layout
    return [
        sum(kind.name == "decoder" for kind in rows[rank][chunk])
        for chunk in range(len(rows[0]))
        for rank in range(len(rows))
    ]


for _line in sys.stdin:
    sys.stdout.write(json.dumps(answer(_line)) + "\n")
