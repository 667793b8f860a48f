"""The parallel manipulator of Nakamura, Yamane, Okada and Komine: machine, control step, plant and experiments."""
