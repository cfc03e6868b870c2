"""What a training has come to: one line that two runs of the same script share where nothing disturbed them."""

import zlib

import torch


def tell(model, **more):
    parameters = torch.cat([parameter.detach().double().flatten() for parameter in model.parameters()])
    print("result", zlib.crc32(parameters.numpy().tobytes()), more, flush=True)
