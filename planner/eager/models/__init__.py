"""Model families as eager PyTorch builds them."""
