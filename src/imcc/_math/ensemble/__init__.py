"""A calibrated ensemble of kernel models: views, leave-one-out, calibration, selection."""
