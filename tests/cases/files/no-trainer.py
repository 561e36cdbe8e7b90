import torch

print(torch.rand(3))
