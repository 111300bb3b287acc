"""DeepSpeed: ds_config.json, a hostfile and a training script."""
