"""What every room uses: files that are written whole or not at all, locks that survive a fork, checks of numbers."""
