"""Whole studies, made of the other rooms' tools."""
