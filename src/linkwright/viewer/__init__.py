"""The web animation: a motion as one HTML page that needs nothing else."""
