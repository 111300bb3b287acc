"""Sources of the facts that terms rest on, and the stack's constants in force."""

from collections.abc import Mapping

from planner.cost.attention import attention_level
from planner.cost.kernels import attention_curve, attention_kernel, gemm_constants
from planner.cost.pricing import Pricing


def in_force(pricing: Pricing, *names: str) -> dict[str, str]:
    """Constants and switches of the stack by name."""
    return {name: str(getattr(pricing.profile, name)) for name in names}


def _calibrated(pricing: Pricing, section: str, field: str, source: str) -> str:
    """A measured constant: file, field, source, and the reason to borrow it."""
    calibration = pricing.calibration
    reason = calibration.transferred.get(section)
    base = f"as {calibration.base}: " if calibration.base else ""
    borrowed = f" ({base}{reason})" if reason else ""
    return f"calibration/{calibration.name}.yaml {field}: {source}{borrowed}"


def _sheet(folder: str, name: str, sources: Mapping[str, str], field: str) -> str:
    """A number of a datasheet: file, field and source."""
    return f"{folder}/{name}.yaml {field}: {sources.get(field, sources.get('*', ''))}"


def gemm_sources(pricing: Pricing, *, grouped: bool, narrow: bool) -> tuple[str, ...]:
    """Sources of the rate of a product.

    Args:
        pricing: The job.
        grouped: True where many experts share one launch.
        narrow: True where inputs are cast if the job trains below half precision.
    """
    dtype, entry = gemm_constants(pricing, grouped=grouped, narrow=narrow)
    section = "grouped_gemm" if grouped else "gemm"
    gpu, peak = pricing.gpu, {"mxfp8": "fp8", "nvfp4": "fp4"}.get(dtype, dtype)
    return (
        _calibrated(pricing, section, f"{section}.{dtype}", entry.source),
        _sheet("gpus", gpu.name, gpu.sources, f"peak_{peak}"),
    )


def memory_sources(pricing: Pricing) -> tuple[str, ...]:
    """Sources of the rate of memory-bound operators."""
    gpu, measured = pricing.gpu, pricing.calibration.memory
    return (
        _calibrated(pricing, "memory", "memory", measured.source),
        _sheet("gpus", gpu.name, gpu.sources, "memory_bandwidth"),
    )


def attention_sources(pricing: Pricing, head_dim: int) -> tuple[str, ...]:
    """Sources of the rate of a fused attention core."""
    curve = attention_curve(pricing, head_dim)
    field = f"attention {curve.kernel} head_dim {curve.head_dim}"
    return (_calibrated(pricing, "attention", field, curve.source),)


def link_sources(pricing: Pricing) -> tuple[str, ...]:
    """Sources of the rates of links, inside a scale-up domain and outside."""
    cluster, measured = pricing.topology.cluster, pricing.calibration.scale_up
    ways = (cluster.scale_up, cluster.nic)
    sheets = (_sheet("links", a.name, a.sources, "bandwidth") for a in ways)
    return (_calibrated(pricing, "scale_up", "scale_up", measured.source), *sheets)


def attention_stack(pricing: Pricing) -> dict[str, str]:
    """Constants of the stack that the attention core depends on."""
    own = {"attention_kernel": attention_kernel(pricing)}
    return (
        in_force(pricing, "attention_rate")
        | own
        | {"attention level": f"{attention_level(pricing):g}"}
    )
