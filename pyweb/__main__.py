"""`python -m pyweb` is the `pyweb` command."""

import sys

from pyweb.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
