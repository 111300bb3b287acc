"""Estimate of one complete layout: time by cause, memory by rank."""
