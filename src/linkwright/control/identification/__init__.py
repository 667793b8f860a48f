"""Identification: records, test signals, spectra, prediction-error models with their uncertainty and validation."""
