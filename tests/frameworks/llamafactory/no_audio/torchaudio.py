"""Stands in for torchaudio, of which PyPI has no CPU build: texts have no sound."""
