"""`python -m linkwright.cli` is `linkwright`."""

from linkwright.cli import main

main()
