"""Facts of GPUs, links, nodes and clusters, measured rates, and places of ranks.

Datasheet facts (`specs`, `catalog`) never sit with measured efficiencies
(`calibration`). `placement` tells the bandwidth that a group of ranks sees, in closed
form or by exact placement. `topology` finds that bandwidth from an explicit graph.
Every number lives in a YAML file beside its source. Nothing here knows of models,
training jobs or plans.
"""
