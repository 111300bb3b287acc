"""llama-3-1-405b: Megatron-Bridge's pre-training recipe, with overrides.yaml.

Words on the command line change it once more: train.train_iters=20
"""

import os
import sys

from megatron.bridge import AutoBridge
from megatron.bridge.recipes.common import _pretrain_common
from megatron.bridge.training.pretrain import pretrain as run
from megatron.bridge.training.config import ConfigContainer
from megatron.bridge.training.gpt_step import forward_step
from megatron.bridge.training.mixed_precision import get_mixed_precision_config
from megatron.bridge.training.utils.omegaconf_utils import (
    process_config_with_overrides,
)


def config() -> ConfigContainer:
    """The recipe with the model, the number formats, and the plan."""
    cfg = _pretrain_common()
    source = os.environ["HF_MODEL"]
    cfg.model = AutoBridge.from_hf_pretrained(source).to_megatron_provider(
        load_weights=False
    )
    cfg.mixed_precision = get_mixed_precision_config("bf16_mixed")
    if os.environ.get("DATA_PATH"):
        cfg.dataset.blend = ([os.environ["DATA_PATH"]], None)
        cfg.tokenizer.tokenizer_model = os.environ.get("TOKENIZER") or source
    else:
        cfg.tokenizer.tokenizer_type = "NullTokenizer"
        cfg.tokenizer.vocab_size = 128255
    if os.environ.get("CHECKPOINTS"):
        cfg.checkpoint.save = cfg.checkpoint.load = os.environ["CHECKPOINTS"]
    return process_config_with_overrides(
        cfg, config_filepath="overrides.yaml", cli_overrides=sys.argv[1:]
    )


if __name__ == "__main__":
    run(config(), forward_step)
