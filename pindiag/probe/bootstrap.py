"""What the parent starts: `python <run>/probe/pindiag_probe/bootstrap.py <run>/probe/launch-NNN.json`."""

from __future__ import annotations

import importlib
import os
import sys


def main() -> None:
    """Make the probe importable from a folder that holds nothing else, last on the path, and run the launch."""
    package = os.path.dirname(os.path.abspath(__file__))
    folder, name = os.path.split(package)
    if sys.path and os.path.abspath(sys.path[0]) == package:
        del sys.path[0]
    sys.path.append(folder)
    importlib.import_module(f"{name}.launch").Launch(sys.argv[1]).run()


if __name__ == "__main__":
    main()
