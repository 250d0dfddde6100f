"""Data: recipes, fetching, documents and images; importing the package loads nothing."""
