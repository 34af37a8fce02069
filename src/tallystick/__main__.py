"""`python -m tallystick` is `tally`."""

from __future__ import annotations

import sys

from tallystick.cli import main

sys.exit(main())
