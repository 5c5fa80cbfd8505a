"""Google Takeout: activity, places, bookmarks."""
