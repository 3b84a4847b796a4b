"""`python -m vicinal` is the command `vicinal`."""

from vicinal._command import main

main()
