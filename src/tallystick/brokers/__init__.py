"""What each broker natively carries: one folder and one row per broker."""
