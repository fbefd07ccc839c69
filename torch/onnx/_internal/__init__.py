"""What torch.onnx is made of; its names may change."""
