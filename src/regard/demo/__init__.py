"""The demo and the small models that lessons use."""
