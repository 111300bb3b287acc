"""NeMo 1: configurations of a GPT, read as what they are in Megatron-LM."""
