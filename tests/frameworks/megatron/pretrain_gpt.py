"""Stands in for Megatron-LM's pretrain_gpt.py on a machine without a GPU.

It takes the same arguments, from the same launch.sh, and trains with megatron-core's
own GPTModel, process groups and pipeline schedules. Left out: the distributed
optimizer (plain AdamW here), TransformerEngine (the local layers, in fp32) and data
(random tokens, the same four batches again and again, so that the loss can fall).
"""

import json
import os
import sys
from argparse import Namespace
from collections.abc import Iterator
from typing import Any

import cpu

cpu.without_gpu()

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from megatron.core import parallel_state as groups  # noqa: E402
from megatron.core.distributed import (  # noqa: E402
    DistributedDataParallel,
    DistributedDataParallelConfig,
    finalize_model_grads,
)
from megatron.core.models.gpt.gpt_layer_specs import (  # noqa: E402
    get_gpt_layer_local_spec,
)
from megatron.core.models.gpt.gpt_model import GPTModel  # noqa: E402
from megatron.core.pipeline_parallel.schedules import (  # noqa: E402
    get_forward_backward_func,
)
from megatron.core.tensor_parallel.random import (  # noqa: E402
    model_parallel_cuda_manual_seed,
)
from settings import checked, config_of, parsed  # noqa: E402

BATCHES = 4
PLAIN = {
    "bf16": False,
    "fp16": False,
    "params_dtype": torch.float32,
    "pipeline_dtype": torch.float32,
    "use_cpu_initialization": True,
    "persist_layer_norm": False,
    "bias_dropout_fusion": False,
    "bias_activation_fusion": False,
    "masked_softmax_fusion": False,
    "gradient_accumulation_fusion": False,
    "apply_rope_fusion": False,
    "deallocate_pipeline_outputs": False,
    "tp_comm_overlap": False,
}
"""What the CPU cannot do, or not in these formats. [-]"""


def connect(args: Namespace, config: Any) -> None:
    """Process groups of every axis."""
    dist.init_process_group("gloo")
    groups.initialize_model_parallel(
        args.tensor_model_parallel_size,
        args.pipeline_model_parallel_size,
        config.virtual_pipeline_model_parallel_size,
        context_parallel_size=args.context_parallel_size,
        expert_model_parallel_size=args.expert_model_parallel_size,
        order="tp-cp-ep-pp-dp" if args.use_tp_pp_dp_mapping else "tp-cp-ep-dp-pp",
    )
    model_parallel_cuda_manual_seed(1)


def chunks_of(args: Namespace, config: Any) -> list[DistributedDataParallel]:
    """The virtual stages of this rank."""
    count = config.virtual_pipeline_model_parallel_size
    return [_chunk(args, config, at if count else None) for at in range(count or 1)]


def rows(args: Namespace) -> int:
    """Rows of the embedding: NullTokenizer's, padded as Megatron pads them."""
    multiple = args.make_vocab_size_divisible_by * args.tensor_model_parallel_size
    return -(-(args.vocab_size + 1) // multiple) * multiple


def _chunk(args: Namespace, config: Any, at: int | None) -> DistributedDataParallel:
    virtual = {} if at is None else {"ignore_virtual": False, "vp_stage": at}
    model = GPTModel(
        config,
        get_gpt_layer_local_spec(
            qk_layernorm=args.qk_layernorm, normalization=args.normalization
        ),
        vocab_size=rows(args),
        max_sequence_length=args.max_position_embeddings,
        pre_process=groups.is_pipeline_first_stage(**virtual),
        post_process=groups.is_pipeline_last_stage(**virtual),
        position_embedding_type=args.position_embedding_type,
        rotary_base=args.rotary_base,
        share_embeddings_and_output_weights=not (
            args.untie_embeddings_and_output_weights
        ),
        vp_stage=at,
    )
    plain = DistributedDataParallelConfig(
        overlap_grad_reduce=False, use_distributed_optimizer=False
    )
    return DistributedDataParallel(config, plain, model)


def tokens(args: Namespace) -> Iterator[torch.Tensor]:
    """Batches of this replica, the same ones in turn."""
    replica, at = groups.get_data_parallel_rank(), 0
    while True:
        seed = torch.Generator().manual_seed(100 * replica + at % BATCHES)
        size = (args.micro_batch_size, args.seq_length + 1)
        yield torch.randint(0, args.vocab_size, size, generator=seed)
        at += 1


def forward(batches: Iterator[torch.Tensor], model: Any) -> Any:
    """One micro-batch, as Megatron's forward_step."""
    both = next(batches)
    inputs, labels = both[:, :-1].contiguous(), both[:, 1:].contiguous()
    length = inputs.shape[1]
    places = torch.arange(length)[None].expand(inputs.shape[0], length)
    mask = torch.triu(torch.ones(length, length, dtype=torch.bool), 1)[None, None]
    output = model(inputs, places, mask, labels=labels)

    def loss(losses: torch.Tensor) -> Any:
        mean = losses.float().mean()
        return mean, {"loss": mean.detach()}

    return output, loss


def layout_of(args: Namespace, chunks: list[Any]) -> dict[str, object]:
    """What megatron-core itself says of this rank's place."""
    return {
        "rank": dist.get_rank(),
        "world": dist.get_world_size(),
        "tp": groups.get_tensor_model_parallel_world_size(),
        "pp": groups.get_pipeline_model_parallel_world_size(),
        "dp": groups.get_data_parallel_world_size(),
        "stage": groups.get_pipeline_model_parallel_rank(),
        "layers": [len(chunk.module.decoder.layers) for chunk in chunks],
        "micro_batches": args.micro_batches,
        "hidden": chunks[0].module.decoder.layers[0].mlp.linear_fc2.weight.shape[1]
        if len(chunks[0].module.decoder.layers)
        else None,
    }


def train(args: Namespace, chunks: list[Any]) -> None:
    """Steps through megatron-core's own schedule; the last stage says the loss."""
    virtual = len(chunks) > 1
    schedule = get_forward_backward_func()
    say(layout_of(args, chunks) | {"schedule": schedule.__name__})
    optimizer = torch.optim.AdamW([p for c in chunks for p in c.parameters()], lr=3e-3)
    data = [tokens(args) for _ in chunks]
    for step in range(args.train_iters):
        for chunk in chunks:
            chunk.zero_grad_buffer()
        losses = schedule(
            forward_step_func=forward,
            data_iterator=data if virtual else data[0],
            model=chunks if virtual else chunks[0],
            num_microbatches=args.micro_batches,
            seq_length=args.seq_length,
            micro_batch_size=args.micro_batch_size,
            decoder_seq_length=args.seq_length,
            forward_only=False,
        )
        finalize_model_grads(chunks)
        for parameter in (p for chunk in chunks for p in chunk.parameters()):
            parameter.grad = parameter.main_grad
        optimizer.step()
        if losses:
            mean = sum(float(part["loss"]) for part in losses) / len(losses)
            say({"step": step, "loss": mean})


def say(fields: dict[str, object]) -> None:
    """One JSON object a line, whole."""
    os.write(1, (json.dumps(fields) + "\n").encode())


def main() -> None:
    """Train as the command line says."""
    args = parsed(sys.argv[1:])
    checked(args, int(os.environ["WORLD_SIZE"]))
    share = args.micro_batch_size * args.data_parallel_size
    args.micro_batches = args.global_batch_size // share
    config = config_of(args, **PLAIN)
    connect(args, config)
    train(args, chunks_of(args, config))
    dist.destroy_process_group()


main()
