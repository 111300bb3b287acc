"""What exists: GPUs, links, nodes, clusters, what they achieve, and where ranks sit.

Datasheet facts (`specs`, `catalog`) never sit with measured efficiencies
(`calibration`). `placement` says which bandwidth a group of ranks sees, in closed
form or by exact placement; `topology` says the same from an explicit graph.
Every number lives in a YAML file beside its source. Nothing here knows of models,
training jobs or plans.
"""
