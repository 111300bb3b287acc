"""One job on several clusters: time, cost, energy, and the candidate to sign for."""
