"""Imported before ranks are forked: torchtitan has to find CPUs."""

import cpu

cpu.install()
