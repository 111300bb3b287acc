"""Imported before ranks are forked: megatron-core has to find no GPU."""

import cpu

cpu.without_gpu()
