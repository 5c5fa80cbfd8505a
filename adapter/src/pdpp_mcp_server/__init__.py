"""What an agent sees: six tools, each result in two equal faces, over stdio and HTTP."""
