"""`python -m linkwright` is `linkwright`."""

from linkwright.cli import main

main()
