"""What every room uses: files whole or not there, locks that survive a fork, checks of numbers, text as it is shown."""
