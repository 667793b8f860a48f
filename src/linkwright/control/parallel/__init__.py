"""The control of parallel manipulators with like legs: their kinematics, and the control step in several forms."""
