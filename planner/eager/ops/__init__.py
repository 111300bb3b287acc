"""Operations as eager PyTorch runs them: what they allocate, save and free.

Each saves what its entry in tools/autograd/derivatives.yaml (PyTorch 2.13.0) reads, and
its backward allocates what that formula allocates, in the same order. Tensors have
shapes, types and storages, never numbers.
"""
