"""Lets torch pin where there is no accelerator: the pin thread runs, its times mean nothing."""

import sys

import torch


def pretend_pinning():
    """Loaders ask torch.accelerator, in torch 2.6 torch.cuda, which tells the script and the optimizer the truth."""
    torch.cuda.is_available = lambda: sys._getframe(1).f_globals["__name__"] == "torch.utils.data.dataloader"
    torch.accelerator.is_available = lambda: True
    torch.accelerator.current_accelerator = lambda *_, **words: None if words else torch.device("cuda")
    torch.accelerator.current_device_index = torch.cuda.current_device = lambda: 0
    torch.accelerator.set_device_index = torch.cuda.set_device = lambda *_: None
    torch.Tensor.pin_memory = lambda tensor, *_: tensor.clone()
