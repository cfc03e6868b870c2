"""The child: runs the target as `python train.py` would and measures inside it. Standard library and torch only.

The folder is copied into the run directory and imported from there as `pindiag_probe`, so imports inside it are
relative and nothing of pindiag is needed in the target's environment.
"""
