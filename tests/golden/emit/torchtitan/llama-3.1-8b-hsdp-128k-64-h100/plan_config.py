"""llama-3-1-8b: a configuration of torchtitan 0.3.0.

    torchrun ... -m torchtitan.train --module plan_config --config train

Words on the command line change it once more: --training.steps=20
"""

import os

from random_tokens import NoTokenizer, RandomTokens
from torchtitan.components.checkpoint import CheckpointManager
from torchtitan.components.dataloader import BaseDataLoader
from torchtitan.components.loss import ChunkedLossWrapper, CrossEntropyLoss
from torchtitan.components.metrics import MetricsProcessor
from torchtitan.components.optimizer import LRSchedulersContainer, default_adamw
from torchtitan.components.tokenizer import BaseTokenizer, HuggingFaceTokenizer
from torchtitan.config import CompileConfig, ParallelismConfig, TrainingConfig
from torchtitan.distributed.activation_checkpoint import FullAC
from torchtitan.hf_datasets.text_datasets import HuggingFaceTextDataLoader
from torchtitan.models.common.config_utils import decoder_vocab_size
from torchtitan.models.llama3 import model_registry
from torchtitan.trainer import Trainer

def train() -> Trainer.Config:
    """The run that the plan describes."""
    model_spec = model_registry("8B")
    return Trainer.Config(
        model_spec=model_spec,
        loss=ChunkedLossWrapper.Config(
            loss_fn=CrossEntropyLoss.Config(
            global_vocab_size=decoder_vocab_size(model_spec),
        ),
        ),
        hf_assets_path=os.environ.get("HF_ASSETS", "assets"),
        tokenizer=tokenizer(),
        dataloader=data(decoder_vocab_size(model_spec)),
        optimizer=default_adamw(lr=float(os.environ.get("LEARNING_RATE") or "1e-5")),
        lr_scheduler=LRSchedulersContainer.Config(
            warmup_steps=int(os.environ.get("WARMUP_STEPS", "200")),
        ),
        training=TrainingConfig(
            # Sequences of one pipeline, or of one forward without one.
            local_batch_size=1,
            global_batch_size=16,
            seq_len=131072,
            steps=int(os.environ.get("TRAIN_STEPS", "1000")),
            # A pipeline, or tokens on their way to experts, cannot be captured, and the
            # plan counts no memory for captured graphs.
            disable_cuda_graphs=True,
        ),
        parallelism=ParallelismConfig(
            data_parallel_replicate_degree=4,
            data_parallel_shard_degree=2,
            # always: ZeRO-3; never: ZeRO-2; default: ZeRO-3, but 2 under a pipeline.
            fsdp_reshard_after_forward="default",
            tensor_parallel_degree=1,
            enable_sequence_parallel=False,
            pipeline_parallel_degree=1,
            context_parallel_degree=8,
            expert_parallel_degree=1,
            # The default, spmd_types, needs a later PyTorch than 2.13.
            spmd_backend="partial_dtensor",
        ),
        activation_checkpoint=FullAC.Config(),
        compile=CompileConfig(enable=True),
        checkpoint=CheckpointManager.Config(
            enable=bool(os.environ.get("CHECKPOINTS")),
            folder=os.environ.get("CHECKPOINTS") or "checkpoint",
        ),
        metrics=MetricsProcessor.Config(log_freq=10),
    )


def tokenizer() -> BaseTokenizer.Config:
    """The tokenizer of HF_ASSETS; none for random tokens."""
    if os.environ.get("DATASET"):
        return HuggingFaceTokenizer.Config()
    return NoTokenizer.Config()


def data(vocabulary: int) -> BaseDataLoader.Config:
    """The data set that DATASET names; random tokens where it is empty."""
    name = os.environ.get("DATASET")
    if name:
        path = os.environ.get("DATASET_PATH") or None
        return HuggingFaceTextDataLoader.Config(dataset=name, dataset_path=path)
    return RandomTokens.Config(vocabulary=vocabulary)
