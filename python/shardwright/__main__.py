"""The command ``shardwright``, which the package carries as a program of its own."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main() -> None:
    program = Path(__file__).with_name("bin") / "shardwright"
    if not program.exists():
        sys.exit(f"shardwright: the package has no program at {program}")
    os.execv(program, [str(program), *sys.argv[1:]])


if __name__ == "__main__":
    main()
