"""Trainers on accelerate: dialects, and the reader and writer of them all."""
