"""MJCF, the model format of MuJoCo, read into descriptions."""
