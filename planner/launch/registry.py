"""The frameworks that plans are written for; a new one is registered in this tuple."""

from planner.launch.deepspeed import reader as deepspeed_reader
from planner.launch.deepspeed import writer as deepspeed_writer
from planner.launch.deepspeed.known import VERSION as DEEPSPEED_VERSION
from planner.launch.megatron import reader as megatron_reader
from planner.launch.megatron import writer as megatron_writer
from planner.launch.megatron.known import VERSION as MEGATRON_VERSION
from planner.launch.target import Target

TARGETS: tuple[Target, ...] = (
    Target(
        name="megatron",
        title="Megatron-LM",
        framework="megatron",
        version=f"core_v{MEGATRON_VERSION}",
        gaps=megatron_writer.gaps,
        write=megatron_writer.write,
        reads=megatron_reader.reads,
        read=megatron_reader.read,
    ),
    Target(
        name="deepspeed",
        title="DeepSpeed",
        framework="deepspeed",
        version=DEEPSPEED_VERSION,
        gaps=deepspeed_writer.gaps,
        write=deepspeed_writer.write,
        reads=deepspeed_reader.reads,
        read=deepspeed_reader.read,
    ),
)
"""Every framework target, in order of listing."""
