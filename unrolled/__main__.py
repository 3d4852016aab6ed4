"""`python -m unrolled` is the command `unrolled`, also for `torchrun -m unrolled`."""

from unrolled.cli.main import main

if __name__ == "__main__":
    main()
