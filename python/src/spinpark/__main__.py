"""``python -m spinpark …`` is ``spinpark …``: the same process becomes the command."""

import os
import sys

from . import command, with_python


def main():
    try:
        path = command()
    except FileNotFoundError as error:
        print("spinpark: %s" % error, file=sys.stderr)
        return 127
    os.execv(path, ["spinpark"] + with_python(sys.argv[1:]))


if __name__ == "__main__":
    sys.exit(main())
