"""`pindiag` that waits four seconds where a user's waits half a minute for a launch without progress."""

import functools
import sys

from pindiag.cli import main
from pindiag.launch import session
from pindiag.launch.patience import Limits

session.Limits = functools.partial(Limits, hang_s=4.0, hang_factor=2.0)  # type: ignore[assignment,misc]
sys.exit(main())
