"""The explorer: a page where you type a sentence and watch it being read, and its server."""
