"""Parts below torch.export: verifier, serialisation, passes, example cases."""
