"""Plans how to lay out an LLM training run on a cluster, with a proof."""

__version__ = "0.1.0"
