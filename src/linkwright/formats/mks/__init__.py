"""The modelling language `.mks`: read into descriptions, and written from them."""
