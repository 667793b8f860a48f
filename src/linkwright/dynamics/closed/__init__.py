"""What is asked of mechanisms with loops beyond recursions: consistent states, reactions, statics, linear models."""
