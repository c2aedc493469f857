"""The demo model: answers by a few rules where no language model is configured, over the same wire format."""
