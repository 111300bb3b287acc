"""Time of memory-bound kernels: bytes through the GPU's memory, and latency."""

from planner.cost.pricing import Pricing
from planner.cost.workload import Workload
from planner.hardware.reading.quantities import Bytes, BytesPerSecond, Column, Seconds


def operator_latency(pricing: Pricing) -> Seconds:
    """Latency of one kernel of the stack on the GPU beside its work. [s]."""
    return pricing.calibration.memory.op_latency * pricing.profile.latency


def stream_rate(workload: Workload) -> BytesPerSecond:
    """Rate at which a kernel streams through the GPU's memory."""
    measured = workload.calibration.memory.efficiency
    return workload.gpu.memory_bandwidth * measured


def memory_time(
    pricing: Pricing, moved: Column[Bytes], operators: float
) -> Column[Seconds]:
    """Time of memory-bound operators.

    ::

        T = traffic bytes / (eta W) + operators t_op

    Args:
        pricing: The job: HBM, measured efficiency, the stack's traffic factor.
        moved: Bytes that fused kernels would move. [B]
    """
    traffic = pricing.profile.memory_traffic * moved
    return traffic / stream_rate(pricing) + operators * operator_latency(pricing)
