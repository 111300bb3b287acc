"""The GPUs of machines that are known to differ from what their name says."""

import re

from planner.calibration.notes.rules import rules
from planner.calibration.rows.blocks import HardwareBlock
from planner.calibration.rows.rows import Row


def hardware_block(row: Row) -> HardwareBlock:
    """A row's hardware, with the part that its publisher is known to run on.

    Only where the row states neither power nor memory of its own: what it says
    of the part always counts for more.

    Returns:
        The row's block, with the power cap that its software set, or with memory,
        bandwidth and power of the custom part.
    """
    block = row.hardware
    if block.power_limit_w is None and (limit := row.software.power_limit_w):
        block = block.model_copy(update={"power_limit_w": limit})
    silent = block.power_limit_w is None and block.hbm_tb_s is None
    assumed = "hardware.gpu_memory_gb" in row.inferred or block.gpu_memory_gb is None
    if not (silent and assumed):
        return block
    where = row.source.url_or_repo_path.lower()
    for part in rules().custom_parts.parts:
        if re.search(part.repo, where) and re.search(part.gpu, block.gpu.lower()):
            return block.model_copy(
                update={
                    "gpu_memory_gb": part.memory_gb,
                    "hbm_tb_s": part.hbm_tb_s,
                    "power_limit_w": part.power_w,
                }
            )
    return block
