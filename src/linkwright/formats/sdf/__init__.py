"""SDF (SDFormat 1.4 to 1.12) into descriptions: values of elements, scopes with their frames, joints, the whole."""
