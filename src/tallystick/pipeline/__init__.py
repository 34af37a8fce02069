"""The same proof on captured traffic of any size, on Spark."""
