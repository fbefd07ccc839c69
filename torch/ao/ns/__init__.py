"""The numeric suite: how far a quantized model is from the float model it came from."""
