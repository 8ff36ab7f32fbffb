"""Capture the attention of a model that does not use regard: torch's own Transformer."""

from pathlib import Path

import torch

import regard

SOURCE = ["the", "cat", "sat", "down", "."]
TARGET = ["le", "chat", "dort"]


def main(page: Path = Path("watched.html")) -> None:
    """Watch one forward pass, print what was captured, and write a page with every head."""
    torch.manual_seed(0)
    model = torch.nn.Transformer(
        64, nhead=4, num_encoder_layers=2, num_decoder_layers=2, batch_first=True
    ).eval()
    source, target = torch.randn(1, len(SOURCE), 64), torch.randn(1, len(TARGET), 64)
    with regard.watch(model) as capture:
        model(source, target)
    print(capture)
    capture.trace(SOURCE, TARGET).save_page(page)
    print(f"\nEvery layer and head: {page}")


if __name__ == "__main__":
    main()
