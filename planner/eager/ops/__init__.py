"""Operations as eager PyTorch allocates, saves and frees them.

The formulas are in tools/autograd/derivatives.yaml (PyTorch 2.13.0). Each operation
saves the tensors that its formula reads. The backward allocates as the formula does, in
the formula's order. Tensors have shapes, types and storages, never numbers.
"""
