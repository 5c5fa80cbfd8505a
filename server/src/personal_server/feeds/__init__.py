"""Feeds: places that the server looks at by itself, so that accounts stay current."""
