"""Whatever a user hands over, as texts, examples with targets, or pairs."""
