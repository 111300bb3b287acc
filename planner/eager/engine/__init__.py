"""Strided autograd over storages with lifetimes."""
