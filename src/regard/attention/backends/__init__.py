"""The three ways to compute attention: dense, fused and blockwise."""
