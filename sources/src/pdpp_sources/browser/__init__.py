"""What a browser keeps on a computer: history, bookmarks, downloads, searches."""
