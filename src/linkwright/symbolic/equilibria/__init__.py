"""States of rest: exact ones at quarter turns, others as numbers from many starts, and their stability."""
