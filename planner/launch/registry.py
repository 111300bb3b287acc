"""Targets that plans are written for; a new target is registered in this tuple."""

from planner.frameworks.accelerate.known import VERSION as ACCELERATE_VERSION
from planner.frameworks.megatron.bridge import VERSION as BRIDGE_VERSION
from planner.frameworks.torchtitan.families import VERSION as TITAN_VERSION
from planner.launch.accelerate import gaps as accelerate_gaps
from planner.launch.accelerate import reader as accelerate_reader
from planner.launch.accelerate import writer as accelerate_writer
from planner.launch.deepspeed import reader as deepspeed_reader
from planner.launch.deepspeed import writer as deepspeed_writer
from planner.launch.deepspeed.known import VERSION as DEEPSPEED_VERSION
from planner.launch.megatron import gaps as megatron_gaps
from planner.launch.megatron import reader as megatron_reader
from planner.launch.megatron import writer as megatron_writer
from planner.launch.megatron.known import VERSION as MEGATRON_VERSION
from planner.launch.megatron_bridge import reader as bridge_reader
from planner.launch.megatron_bridge import writer as bridge_writer
from planner.launch.target import Target
from planner.launch.torchtitan import gaps as titan_gaps
from planner.launch.torchtitan import reader as titan_reader
from planner.launch.torchtitan import writer as titan_writer

TARGETS: tuple[Target, ...] = (
    Target(
        name="megatron",
        title="Megatron-LM",
        framework="megatron",
        version=f"core_v{MEGATRON_VERSION}",
        gaps=megatron_gaps.gaps,
        write=megatron_writer.write,
        reads=megatron_reader.reads,
        read=megatron_reader.read,
    ),
    Target(
        name="megatron-bridge",
        title="Megatron-Bridge",
        framework="megatron",
        version=BRIDGE_VERSION,
        gaps=bridge_writer.gaps,
        write=bridge_writer.write,
        reads=bridge_reader.reads,
        read=bridge_reader.read,
    ),
    Target(
        name="accelerate",
        title="accelerate",
        framework="accelerate",
        version=ACCELERATE_VERSION,
        gaps=accelerate_gaps.gaps,
        write=accelerate_writer.write,
        reads=accelerate_reader.reads,
        read=accelerate_reader.read,
        holds=frozenset({"deepspeed"}),
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
    Target(
        name="torchtitan",
        title="torchtitan",
        framework="torchtitan",
        version=TITAN_VERSION,
        gaps=titan_gaps.gaps,
        write=titan_writer.write,
        reads=titan_reader.reads,
        read=titan_reader.read,
    ),
)
"""Every framework target, in order of listing."""
