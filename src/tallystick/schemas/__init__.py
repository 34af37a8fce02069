"""The git-native schema registry: catalog, validation, compatibility, privacy."""
