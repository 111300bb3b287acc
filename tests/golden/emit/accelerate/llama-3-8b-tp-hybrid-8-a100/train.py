"""Trains what accelerate.yaml lays out, with transformers' Trainer or TRL's.

    train.py [--FIELD VALUE ...]     fields of training.yaml, for example --max_steps 20

accelerate.yaml places the ranks, training.yaml holds TrainingArguments (SFTConfig where
TRL trains), run.yaml the rest: weights, attention, loss, adapters. Variables:

    MODEL        name or folder of the weights; empty: new ones from config.json, which
                 adapters are refused beside, but to try them on a CPU
    DATA_PATH    tokens as .npy, or for TRL a file of texts or messages as JSON lines;
                 empty: made-up tokens
    CHECKPOINTS  folder for checkpoints; empty: none
    DEVICE       cpu: try a small model with gloo, in fp32
"""

import json
import os
import sys
import tempfile
import time
from pathlib import Path

import yaml

HERE = Path(__file__).resolve().parent
RUN = yaml.safe_load((HERE / "run.yaml").read_text())
ON_CPU = os.environ.get("DEVICE") == "cpu"
WORLD = int(os.environ.get("WORLD_SIZE", "1"))


def set_up() -> None:
    """Set what `accelerate launch` sets, where torchrun alone started this rank."""
    if "ACCELERATE_MIXED_PRECISION" not in os.environ:
        from accelerate.commands import launch
        from accelerate.utils import launch as variables

        words = ["--config_file", str(HERE / "accelerate.yaml"), __file__]
        args, *_ = launch._validate_launch_command(
            launch.launch_command_parser().parse_args(words)
        )
        args.num_machines, args.main_process_port = 1, 0
        args.deepspeed_fields_from_accelerate_config = ""
        if args.use_deepspeed:
            os.environ |= variables.prepare_deepspeed_cmd_env(args)[1]
        else:
            os.environ |= variables.prepare_multi_gpu_env(args)
    if ON_CPU:
        os.environ["ACCELERATE_MIXED_PRECISION"] = "no"


def meshes() -> bool:
    """Whether FSDP or a mesh places the ranks, rather than plain replicas."""
    names = ("ACCELERATE_USE_FSDP", "ACCELERATE_USE_PARALLELISM_CONFIG")
    return any(os.environ.get(name, "").lower() == "true" for name in names)


def share_cores() -> None:
    """As many threads as there are cores for this rank."""
    import torch

    ranks = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    torch.set_num_threads(max((os.cpu_count() or 1) // ranks, 1))


def mesh_on_cpu() -> None:
    """Let accelerate take CPU ranks for GPUs: with use_cpu each would train alone."""
    import torch
    from accelerate.state import PartialState
    from accelerate.utils import DistributedType

    def backend(self, cpu=False, sagemaker_dp=False, backend=None):
        return "gloo", DistributedType.MULTI_GPU

    def device(self):
        self.device = torch.device("cpu")

    PartialState._prepare_backend = backend
    PartialState.set_device = device


def arguments():
    """TrainingArguments of training.yaml, changed by the command line."""
    from transformers import HfArgumentParser, TrainingArguments

    given = yaml.safe_load((HERE / "training.yaml").read_text())
    words = [word.removeprefix("--") for word in sys.argv[1:]]
    given |= {k: value(v) for k, v in zip(words[::2], words[1::2], strict=True)}
    folder = os.environ.get("CHECKPOINTS")
    given |= {"output_dir": folder or str(Path(tempfile.gettempdir()) / "output")}
    given |= {} if folder else {"save_strategy": "no"}
    if ON_CPU:
        given |= on_cpu(given)
    kind = TrainingArguments
    if RUN["trainer"] == "trl":
        from trl import SFTConfig as kind
    return HfArgumentParser(kind).parse_dict(given, allow_extra_keys=False)[0]


def value(word):
    """A word of the command line: YAML 1.1 would take the number 1e-5 for text."""
    try:
        return float(word) if "e" in word else yaml.safe_load(word)
    except ValueError:
        return yaml.safe_load(word)


def on_cpu(given):
    """What a trainer without a GPU is told instead; DeepSpeed knows CPUs by itself."""
    if os.environ.pop("ACCELERATE_USE_DEEPSPEED", "false").lower() == "true":
        return {"use_cpu": True, "deepspeed": str(HERE / "ds_config.json")}
    plain = {"bf16": False, "fp16": False, "tf32": None, "use_liger_kernel": False}
    adam = str(given["optim"]).startswith(("adamw", "paged_adamw"))
    optim = "adamw_torch" if adam else given["optim"]
    return plain | {"use_cpu": not meshes(), "optim": optim}


def base_model():
    """The model as its weights are stored, or with new ones; laid on tensor ranks."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, BitsAndBytesConfig

    source = os.environ.get("MODEL") or None
    given = {"dtype": torch.float32 if ON_CPU else getattr(torch, RUN["weights"])}
    # A machine without GPUs has no flash attention: there the model's own default.
    given |= {} if ON_CPU else {"attn_implementation": RUN["attention"]}
    if RUN.get("quantization"):
        given |= {"quantization_config": BitsAndBytesConfig(**RUN["quantization"])}
        place = {} if meshes() else {"": int(os.environ.get("LOCAL_RANK", "0"))}
        given |= {"device_map": place or None}
    if RUN.get("distributed"):
        given |= {"distributed_config": tensor_ranks()}
    if source:
        return AutoModelForCausalLM.from_pretrained(source, **given)
    if RUN.get("quantization") or (RUN.get("adapters") and not ON_CPU):
        sys.exit("train.py: adapters lie beside weights that are read: set MODEL")
    config = AutoConfig.from_pretrained(HERE / "config.json")
    return new_model(config, given)


def tensor_ranks():
    """Transformers' own mesh, which tensor ranks need; Trainer tells accelerate."""
    from transformers.distributed import DistributedConfig

    for name in [n for n in os.environ if "PARALLELISM_CONFIG" in n]:
        del os.environ[name]
    return DistributedConfig(**RUN["distributed"])


def new_model(config, given):
    """New weights; where rank 0 hands them out the others have only their shapes."""
    from contextlib import nullcontext

    import torch
    from accelerate import init_empty_weights
    from transformers import AutoModelForCausalLM

    mesh = given.pop("distributed_config", None)
    shapes = os.environ.get("FSDP_CPU_RAM_EFFICIENT_LOADING", "").lower() == "true"
    empty = shapes and os.environ.get("RANK", "0") != "0"
    torch.manual_seed(0)
    with init_empty_weights() if empty else nullcontext():
        model = AutoModelForCausalLM.from_config(config, **given)
    # A weight without values is a new one wherever it is used: the head, too.
    model.tie_weights()
    if mesh is None:
        return model
    mesh, _, manager = model.prepare_distribute_model(mesh)
    model.config.distributed_config = mesh
    return model.maybe_distribute_model(model, mesh, manager)


def with_adapters(model):
    """Low-rank adapters of run.yaml beside the frozen model."""
    if not RUN.get("adapters"):
        return model
    from peft import LoraConfig, get_peft_model

    wide = RUN["adapters_in_fp32"]
    config = LoraConfig(**RUN["adapters"])
    return get_peft_model(model, config, autocast_adapter_dtype=wide)


def tokens(vocabulary: int):
    """Sequences of the plan's length: those of DATA_PATH, or a few made up."""
    import numpy as np

    length = RUN["seq_len"]
    path = os.environ.get("DATA_PATH", "")
    if path:
        every = np.load(path, mmap_mode="r")
        return every[: every.size // length * length].reshape(-1, length)
    return np.random.default_rng(0).integers(0, vocabulary, (8, length))


def dataset(model, args):
    """What the trainer reads: sequences of tokens, or texts that TRL cuts up."""
    import numpy as np
    import torch

    path, by_trl = os.environ.get("DATA_PATH", ""), RUN["trainer"] == "trl"
    if by_trl:
        import datasets
    if by_trl and path and not path.endswith(".npy"):
        return datasets.load_dataset("json", data_files=path, split="train")
    step = args.per_device_train_batch_size * args.gradient_accumulation_steps * WORLD
    its = tokens(model.config.vocab_size)
    rows = len(its) if path else 4 * step
    if by_trl:
        args.packing = False
        return datasets.Dataset.from_dict({"input_ids": its[np.arange(rows) % len(its)]})

    class Rows(torch.utils.data.Dataset):
        def __len__(self):
            return rows if path else 100 * step

        def __getitem__(self, place):
            row = torch.tensor(its[place % len(its)], dtype=torch.long)
            return {"input_ids": row, "labels": row.clone()}

    return Rows()


def trainer(model, args):
    """The trainer, with time and memory of every step in its log."""
    from transformers import Trainer

    watching = watch()
    given = {"model": model, "args": args, "callbacks": [watching]}
    given["train_dataset"] = dataset(model, args)
    kind = Trainer
    if RUN["trainer"] == "trl":
        from trl import SFTTrainer as kind

        given["processing_class"] = tokenizer()
        if RUN["loss"] == "model":
            # TRL's loss works in chunks of tokens; the plan is for the model's own.
            kind.compute_loss = Trainer.compute_loss
    watching.trainer = kind(**given)
    return watching.trainer


def tokenizer():
    """The model's own; where there is none, one that TRL asks only for padding."""
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    if os.environ.get("MODEL"):
        return AutoTokenizer.from_pretrained(os.environ["MODEL"])
    from tokenizers import Tokenizer, models

    words = models.WordLevel({"<pad>": 0, "<eos>": 1}, unk_token="<pad>")
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(words), pad_token="<pad>", eos_token="<eos>"
    )


def watch():
    """Where every rank is, at the start; seconds a step and peak memory in the log."""
    import torch
    from transformers import TrainerCallback

    class Watch(TrainerCallback):
        def on_train_begin(self, args, state, control, **more):
            report(self.trainer)
            self.step, self.at = state.global_step, time.perf_counter()

        def on_log(self, args, state, control, logs=None, **more):
            steps = state.global_step - self.step
            if "loss" not in logs or not steps:
                return
            now = time.perf_counter()
            logs["step_time"] = round((now - self.at) / steps, 6)
            if torch.cuda.is_available():
                peak = torch.cuda.max_memory_allocated() / 2**30
                logs["max_allocated (GiB)"] = round(peak, 3)
            self.step, self.at = state.global_step, now

    return Watch()


def report(its) -> None:
    """Say where this rank is and what it holds, on one line."""
    from torch.distributed.tensor import DTensor

    every = list(its.model_wrapped.parameters())
    spread = [p for p in every if isinstance(p, DTensor)]
    mesh = spread[0].device_mesh if spread else None
    said = {
        "rank": its.accelerator.process_index,
        "world": its.accelerator.num_processes,
        "type": its.accelerator.distributed_type.value,
        "zero": getattr(its.accelerator.state.deepspeed_plugin, "zero_stage", None),
        "mesh": dict(zip(mesh.mesh_dim_names, mesh.shape, strict=True)) if mesh else {},
        "placements": sorted({str(p.placements) for p in spread}),
        "sequences": its.args.per_device_train_batch_size,
        "accumulation": its.args.gradient_accumulation_steps,
        "parameters": sum(getattr(p, "ds_numel", p.numel()) for p in every),
        "held": sum(held(p) for p in every),
    }
    sys.stdout.write("LAYOUT " + json.dumps(said) + "\n")  # one write: ranks share it
    sys.stdout.flush()


def held(parameter) -> int:
    """Numbers of a parameter that this rank keeps."""
    from torch.distributed.tensor import DTensor

    if hasattr(parameter, "ds_tensor"):
        return parameter.ds_tensor.numel()
    whole = not isinstance(parameter, DTensor)
    return (parameter if whole else parameter.to_local()).numel()


def leave_together() -> None:
    """A rank that leaves first takes a connection from the others."""
    from torch import distributed

    if not distributed.is_initialized():
        return
    distributed.barrier()
    if not ON_CPU:
        distributed.destroy_process_group()
        return
    # A thread of gloo's that still runs would end the process with an error.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def main() -> None:
    set_up()
    if ON_CPU:
        share_cores()
    if ON_CPU and WORLD > 1 and meshes():
        mesh_on_cpu()
    args = arguments()
    trainer(with_adapters(base_model()), args).train()
    leave_together()


if __name__ == "__main__":
    main()
