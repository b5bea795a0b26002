"""The house rules of Werk as code: what `tools/tidy` and `tools/check_layers` check."""
