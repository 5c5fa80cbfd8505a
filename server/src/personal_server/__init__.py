"""A personal server: one person's records, read in bounded slices that the person granted."""
