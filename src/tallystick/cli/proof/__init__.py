"""The steps of `tally prove`, and what they need."""
