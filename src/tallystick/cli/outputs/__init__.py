"""Output for people and for machines: colour on terminals, annotations, SARIF."""
