"""The one language of outputs: texts become expressions, and these become values over (time, case), or derivatives."""
