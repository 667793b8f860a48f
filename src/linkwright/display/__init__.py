"""What notebooks show of mechanisms, motions and reports: HTML that needs nothing else, on light and dark ground."""
