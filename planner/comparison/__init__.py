"""The same job on several clusters: time, cost, energy, and which to sign for."""
