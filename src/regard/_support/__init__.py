"""Support code that several packages use: files, progress, threads, functorch."""
