import sys

from headlight.app.server.command import main

if __name__ == "__main__":
    sys.exit(main())
