"""Kinematics of constrained bodies: constraint equations, assembly, position, velocity and acceleration analysis."""
