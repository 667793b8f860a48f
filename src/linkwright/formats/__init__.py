"""Model files into descriptions and back: `.mks`, URDF, SDF, MJCF, Denavit-Hartenberg tables, and meshes."""
