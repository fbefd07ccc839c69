"""Small programs that show what torch.export takes, by the names under which its documents list
them."""
