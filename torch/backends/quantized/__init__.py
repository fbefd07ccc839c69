"""Which engine computes with quantized numbers: there is none yet."""

engine = "none"
supported_engines = []
