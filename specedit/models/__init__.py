"""Named models: where they come from, and the cache of those that are ready to load."""
