"""`python -m taoloop`: the command line, where `tao` is not on the path."""

from taoloop.cli import main

if __name__ == "__main__":
    main()
