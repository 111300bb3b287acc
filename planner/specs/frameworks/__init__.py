"""Rooms of frameworks as types: limits, profile, switches."""
