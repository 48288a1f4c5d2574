import sys

from headlight.app.command import main

if __name__ == "__main__":
    sys.exit(main())
