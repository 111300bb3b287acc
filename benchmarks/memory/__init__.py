"""Rules of thumb about memory as worked examples, and a check against PyTorch."""
