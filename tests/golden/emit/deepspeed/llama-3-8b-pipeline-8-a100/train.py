"""Trains a causal language model under DeepSpeed, as ds_config.json lays it out.

launch.sh starts it on every rank. Degrees are read from the configuration:
`pipeline.stages` and `pipeline.partition` (layers by stage), `tensor_parallel`,
`sequence_parallel_size` (Ulysses), `activation_checkpointing.number_checkpoints` (every
block is checkpointed) and ZeRO's own block. Without --data it trains on a made-up
sequence that a model can learn, so that a first run needs nothing but this folder.
"""

import argparse
import json
import os
import time

os.environ.setdefault("DEEPSPEED_LOG_LEVEL", "info")

import deepspeed
import numpy
import torch
import torch.distributed as dist
import transformers.modeling_utils  # with torch._dynamo, before zero.Init: see whole()
from deepspeed.accelerator import get_accelerator
from deepspeed.pipe import LayerSpec, PipelineModule, TiedLayerSpec
from deepspeed.runtime.sequence_parallel.ulysses_sp import UlyssesSPAttentionHF
from deepspeed.utils import set_z3_leaf_modules
from torch import nn
from torch.nn.functional import cross_entropy
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.integrations import HfDeepSpeedConfig


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", default="ds_config.json")
    parser.add_argument("--model", default="config.json")
    parser.add_argument("--seq-length", type=int, required=True)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--data", default="", help="tokens, a one-dimensional .npy")
    parser.add_argument("--checkpoints", default="", help="folder; empty saves none")
    parser.add_argument("--save-every", type=int, default=1000)
    parser.add_argument("--learning-rate", type=float)
    parser.add_argument("--attention", default="sdpa", help="of transformers")
    parser.add_argument("--local_rank", type=int, default=-1)
    return parser.parse_args()


def settings(args):
    """ds_config.json; on a machine without GPUs with PyTorch's own AdamW."""
    with open(args.config) as file:
        its = json.load(file)
    params = its["optimizer"]["params"]
    if args.learning_rate is not None:
        params["lr"] = args.learning_rate
    for name in ("offload_optimizer", "offload_param"):
        block = its["zero_optimization"].get(name, {})
        if "nvme_path" in block:
            block["nvme_path"] = os.environ.get("NVME_PATH", block["nvme_path"])
        if block and on_cpu():
            block["pin_memory"] = False
    if on_cpu() and its["optimizer"]["type"] == "AdamW":
        params["torch_adam"] = True
        its["zero_force_ds_cpu_optimizer"] = False
    return its


def on_cpu():
    return get_accelerator().device_name() == "cpu"


class Degrees:
    """What ds_config.json says of the mesh."""

    def __init__(self, its):
        self.tp = max(its.get("tensor_parallel", {}).get("autotp_size", 1), 1)
        self.cp = its.get("sequence_parallel_size", 1)
        self.pp = its.get("pipeline", {}).get("stages", 1)
        self.zero = its["zero_optimization"]["stage"]
        self.checkpointed = bool(
            its.get("activation_checkpointing", {}).get("number_checkpoints")
        )


def config_of(args):
    with open(args.model) as file:
        fields = json.load(file)
    config = AutoConfig.for_model(fields.pop("model_type"), **fields)
    config.use_cache = False
    # A machine without GPUs has no flash attention: there the model's own default.
    if not (on_cpu() and "flash" in args.attention):
        config._attn_implementation = args.attention
    return config


# A model in stages: its blocks by themselves, with what stands before and after them.


class Embedding(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.table = nn.Embedding(config.vocab_size, config.hidden_size)
        nn.init.normal_(self.table.weight, std=config.initializer_range)

    @property
    def weight(self):
        return self.table.weight

    def forward(self, tokens):
        return self.table(tokens)


def skeleton(config):
    """The model without its weights: its classes are what is wanted."""
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(config)


class Block(nn.Module):
    def __init__(self, config, index, kind, rotary):
        super().__init__()
        self.layer = kind(config, index)
        self.rotary = rotary(config=config)
        for weight in self.layer.parameters():
            if weight.dim() > 1:
                nn.init.normal_(weight, std=config.initializer_range)

    def forward(self, hidden):
        at = torch.arange(hidden.shape[1], device=hidden.device)[None]
        angles = self.rotary(hidden, at)
        out = self.layer(
            hidden,
            attention_mask=None,
            position_ids=at,
            position_embeddings=angles,
        )
        return out[0] if isinstance(out, tuple) else out


class Head(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.linear = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        nn.init.normal_(self.linear.weight, std=config.initializer_range)

    def forward(self, hidden):
        return self.linear(hidden)


def tied_head(module, hidden):
    return nn.functional.linear(hidden, module.weight)


class Stages(PipelineModule):
    """A pipeline whose stages hold the layers that the plan gives them."""

    def __init__(self, layers, counts, ends, **given):
        first, last = ends
        bounds = [0]
        for count in counts:
            bounds.append(bounds[-1] + count)
        self.planned = [0, *(first + bound for bound in bounds[1:])]
        self.planned[-1] += last
        super().__init__(layers, num_stages=len(counts), **given)

    def _partition_layers(self, method="planned"):
        self.parts = self.planned
        stage = self._topo.get_coord(self.global_rank).pipe
        self._set_bounds(start=self.parts[stage], stop=self.parts[stage + 1])


def loss_of(logits, targets):
    return cross_entropy(logits.float().flatten(0, 1), targets.flatten())


def staged(config, its):
    model = skeleton(config)
    block, norm = type(model.model.layers[0]), type(model.model.norm)
    rotary = type(model.model.rotary_emb)
    blocks = [
        LayerSpec(Block, config, index, block, rotary)
        for index in range(config.num_hidden_layers)
    ]
    if config.tie_word_embeddings:
        first = TiedLayerSpec("embedding", Embedding, config)
        head = TiedLayerSpec("embedding", Embedding, config, forward_fn=tied_head)
    else:
        first, head = LayerSpec(Embedding, config), LayerSpec(Head, config)
    last = LayerSpec(norm, config.hidden_size, eps=config.rms_norm_eps)
    pipeline = its["pipeline"]
    return Stages(
        [first, *blocks, last, head],
        pipeline["partition"],
        (1, 2),
        loss_fn=loss_of,
        activation_checkpoint_interval=pipeline["activation_checkpoint_interval"],
        checkpointable_layers=["Block"],
    )


# A model on every rank, whole or in ZeRO's shards.


def whole(config, its, degrees):
    # While this lives transformers builds the model in shards: it imports the model's
    # code before zero.Init replaces PyTorch's constructors, which torch._dynamo would
    # refuse, and gathers each weight to give it its first values.
    sharded = HfDeepSpeedConfig(its) if degrees.zero == 3 and degrees.tp == 1 else None
    model = AutoModelForCausalLM.from_config(config)
    if sharded:
        gather_experts_together(model)
    if degrees.checkpointed:
        # Non-reentrant, so that inputs without a gradient do not cut the graph.
        model.gradient_checkpointing_enable({"use_reentrant": False})
    model.train()
    return model


def gather_experts_together(model):
    """Ranks choose different experts: each gathers a layer's all, and none waits."""
    kinds = {type(m) for m in model.modules() if hasattr(m, "experts")}
    if kinds:
        set_z3_leaf_modules(model, list(kinds))


def ulysses(model, args, its, degrees):
    """Attention divided over heads inside, over the sequence outside."""
    return UlyssesSPAttentionHF.register_with_transformers(
        model_name_or_path=model,
        core_attn_implementation=args.attention,
        sequence_parallel_size=degrees.cp,
        micro_batch_size=its["train_micro_batch_size_per_gpu"],
        seq_length=args.seq_length,
        seq_length_is_variable=False,
    )


def batches(args, vocabulary, size, replica, replicas):
    """(inputs, targets) of one replica without end. [token], shape (size, length)."""
    length, number = args.seq_length, 0
    tokens = numpy.load(args.data, mmap_mode="r") if args.data else None
    while True:
        at = (number * replicas + replica) * size
        rows = [made_up(at + row, length + 1, vocabulary, tokens) for row in range(size)]
        both = torch.from_numpy(numpy.stack(rows)).to(get_accelerator().current_device_name())
        yield both[:, :-1].contiguous(), both[:, 1:].contiguous()
        number += 1


def made_up(number, length, vocabulary, tokens):
    """A window of the data, or tokens each of which follows from the one before."""
    if tokens is not None:
        windows = max((len(tokens) - 1) // (length - 1), 1)
        start = (number % windows) * (length - 1)
        return numpy.asarray(tokens[start : start + length], dtype=numpy.int64)
    few = min(vocabulary, 64)
    return (number * 7 + 3 * numpy.arange(length, dtype=numpy.int64)) % few


def step_whole(engine, data, degrees):
    """One optimizer step; the mean loss of this rank's tokens."""
    total, rounds = 0.0, engine.gradient_accumulation_steps()
    for _ in range(rounds):
        inputs, targets = next(data)
        at = torch.arange(inputs.shape[1], device=inputs.device)[None]
        at = at.expand(inputs.shape[0], -1)
        if degrees.cp > 1:
            mine = dist.get_rank() % degrees.cp
            inputs, targets, at = (
                x.chunk(degrees.cp, dim=1)[mine].contiguous()
                for x in (inputs, targets, at)
            )
        out = engine(input_ids=inputs, position_ids=at, use_cache=False)
        loss = loss_of(out.logits, targets)
        # DeepSpeed sums the gradients of the ranks that share a sequence.
        engine.backward(loss / degrees.cp)
        engine.step()
        total += loss.detach().float().item() / rounds
    return total


def report(engine, degrees):
    """The layout as DeepSpeed built it, and what every rank really holds."""
    parts = getattr(engine.module, "parts", None)
    world = dist.get_world_size()
    tp, cp = max(engine.autotp_size(), 1), engine.sequence_parallel_size
    pp = getattr(engine, "num_stages", 1)
    layout = {
        "gpus": world,
        "tp": tp,
        "cp": cp,
        "pp": pp,
        "dp": world // (tp * cp * pp),
        "zero_stage": int(engine.zero_optimization_stage()),
        "micro_batch": engine.train_micro_batch_size_per_gpu(),
        "grad_accum": engine.gradient_accumulation_steps(),
        "engine": type(engine).__name__,
        "optimizer": type(engine.optimizer).__name__,
        "parts": parts,
    }
    held = [None] * world
    dist.all_gather_object(held, holdings(engine))
    if dist.get_rank() == 0:
        print("LAYOUT " + json.dumps(layout), flush=True)
        print("HELD " + json.dumps(held), flush=True)


def holdings(engine):
    """Parameters and optimizer states of this rank. [1]."""
    parameters = sum(
        p.ds_tensor.numel() if hasattr(p, "ds_tensor") else p.numel()
        for p in engine.module.parameters()
    )
    names = (
        "single_partition_of_fp32_groups",
        "fp32_partitioned_groups_flat",
        "fp32_groups_flat_partition",
    )
    own = [getattr(engine.optimizer, name, None) for name in names]
    states = [tensor for group in own if group is not None for tensor in group]
    return {
        "parameters": parameters,
        "states": sum(tensor.numel() for tensor in states),
        "on": sorted({tensor.device.type for tensor in states}),
        "host_optimizer": bool(getattr(engine.optimizer, "cpu_offload", False))
        or bool(getattr(engine.optimizer, "offload_optimizer", False)),
    }


def main():
    args = arguments()
    deepspeed.init_distributed()
    torch.manual_seed(1234)
    its = settings(args)
    degrees, config = Degrees(its), config_of(args)
    if degrees.pp > 1:
        model, mpu = staged(config, its), None
    else:
        model = whole(config, its, degrees)
        mpu = ulysses(model, args, its, degrees)
    engine, *_ = deepspeed.initialize(
        model=model,
        model_parameters=[p for p in model.parameters() if p.requires_grad],
        config=its,
        mpu=mpu,
    )
    report(engine, degrees)
    if args.checkpoints and os.path.isdir(args.checkpoints):
        engine.load_checkpoint(args.checkpoints)
    train(engine, args, config.vocab_size, degrees)


def train(engine, args, vocabulary, degrees):
    size, rank = engine.train_micro_batch_size_per_gpu(), dist.get_rank()
    inner = degrees.tp * degrees.cp
    replicas = dist.get_world_size() // (inner * degrees.pp)
    # Pipeline stages are outermost, so that ranks of a stage follow each other.
    data = batches(args, vocabulary, size, rank // inner % replicas, replicas)
    samples = size * engine.gradient_accumulation_steps() * replicas
    while engine.global_steps < args.steps:
        start = time.perf_counter()
        if degrees.pp > 1:
            loss = engine.train_batch(data).item()
        else:
            loss = step_whole(engine, data, degrees)
        get_accelerator().synchronize()
        spent = time.perf_counter() - start
        if rank == 0:
            memory = get_accelerator().max_memory_allocated() / 2**30
            print(
                f"step={engine.global_steps}, loss={loss:.4f}, "
                f"SamplesPerSec={samples / spent:.6f}, MaxMemAllocated={memory:.2f}GB",
                flush=True,
            )
        if args.checkpoints and engine.global_steps % args.save_every == 0:
            engine.save_checkpoint(args.checkpoints)


if __name__ == "__main__":
    main()
